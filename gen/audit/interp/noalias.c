/* Which arguments of a call may not alias. */
#include "gen/audit/interp/interp.h"

bool interp_may_overlap(struct value x, struct value y) {
  return x.object >= 0 && x.object == y.object && x.base + x.low < y.base + y.base_width + y.slot_size &&
         y.base + y.low < x.base + x.base_width + x.slot_size;
}

static void report_overlap(struct interp *interp, const struct syntax *call, const char *function, struct value written,
                           struct value other) {
  uint64_t loops =
      written.loops | written.blame | other.loops | other.blame; /* of fewer iterations the memory may be disjoint */
  interp_fail(interp, FAILURE_OVERLAP, loops != 0 ? VERDICT_CANNOT_TELL : VERDICT_BROKEN, call, loops,
              "%s %s %s over its operand %s", function, loops != 0 ? "may write" : "writes",
              interp_slot_name(interp, written), interp_slot_name(interp, other));
}

void interp_require_noalias(struct interp *interp, const struct syntax *call, const char *function,
                            struct value written, struct value other) {
  if (written.object < 0 || other.object < 0) return;
  bool of_kernel = interp->objects[written.object].kind == OBJECT_PARAMETER &&
                   interp->objects[other.object].kind == OBJECT_PARAMETER;
  if (of_kernel && written.object != other.object)
    interp->states[written.object].noalias |= (uint64_t)1 << (other.object - interp->first_parameter);
  if (interp_may_overlap(written, other)) report_overlap(interp, call, function, written, other);
}

void interp_require_in_place(struct interp *interp, const struct syntax *call, const char *function,
                             struct value written, struct value other) {
  bool certain =
      written.base_width == 0 && other.base_width == 0 && written.low == written.high && other.low == other.high;
  if (certain && written.base + written.low == other.base + other.low) return;
  if (interp_may_overlap(written, other)) report_overlap(interp, call, function, written, other);
}
