/* Exchanges in a ring of the ranks along an axis. All ranks reach the same calls with the same arguments
 * (same-collectives), so each message is received if the rank that it is sent to receives from its sender. */
#include "gen/audit/interp/external.h"
#include "gen/audit/interp/interp.h"

static bool may_overlap(struct value x, struct value y, int64_t bytes) {
  if (x.object < 0 || x.object != y.object) return false;
  return x.base + x.low < y.base + y.base_width + y.high + bytes &&
         y.base + y.low < x.base + x.base_width + x.high + bytes;
}

/* accel_send_receive(axis, to, x, from, y, bytes) */
void interp_ring(struct interp *interp, const struct syntax *node, const struct value *arguments, int count) {
  if (count < 6) return;
  const int64_t ranks = external_ranks(interp, arguments[0]);
  const struct value to = arguments[1], from = arguments[3], bytes = arguments[5];
  interp->passes_on = true;
  if (ranks == 1 || ranks == VALUE_MAX || !value_is_one(to) || !value_is_one(from) || !value_is_one(bytes)) {
    interp_fail(interp, FAILURE_DEADLOCK, VERDICT_CANNOT_TELL, node, 0, "an argument of %s is not one number",
                node->function->name);
    return;
  }
  if (to.low % ranks == 0)
    interp_fail(interp, FAILURE_DEADLOCK, VERDICT_BROKEN, node, 0, "%s sends from a rank to itself",
                node->function->name);
  if ((to.low + from.low) % ranks != 0)
    interp_fail(interp, FAILURE_DEADLOCK, VERDICT_BROKEN, node, 0,
                "each rank sends to rank + %lld, which receives from rank + %lld, of %lld ranks", (long long)to.low,
                (long long)from.low, (long long)ranks);
  const uint64_t loops = arguments[2].loops | arguments[2].blame | arguments[4].loops | arguments[4].blame;
  if (may_overlap(arguments[2], arguments[4], bytes.low))
    interp_fail(interp, FAILURE_OVERLAP, loops != 0 ? VERDICT_CANNOT_TELL : VERDICT_BROKEN, node, loops,
                "%s receives into the memory that it sends from", node->function->name);
}

void interp_claim_ring(struct interp *interp) {
  if (!interp->passes_on || interp->n_stages > 0) return;
  struct claim *claim =
      audit_claim(interp->audit, "deadlock-free",
                  "Ranks reach each exchange in a ring together (same-collectives), and each message is sent to the "
                  "rank that receives it: the distances of sending and receiving are opposite.");
  interp_add_failures(interp, claim, FAILURE_DEADLOCK);
  claim_evidence(interp->audit, claim, "all ranks along an axis alike");
}
