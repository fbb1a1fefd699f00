/* The API's errors and events, as problems of the runtime. */
#include "runtime/xla/state.h"

bool rt_xla_good(const PJRT_Api *api, PJRT_Error *error, const char *what, struct problem *problem) {
  if (error == NULL) return true;
  PJRT_Error_Message_Args message = RT_PJRT(PJRT_Error_Message_Args, .error = error);
  api->PJRT_Error_Message(&message);
  int length = (int)message.message_size;
  while (length > 0 && message.message[length - 1] == '\n') length--;
  rt_problem(problem, "XLA cannot %s: %.*s", what, length, message.message);
  for (char *at = problem->what; *at != '\0'; at++)
    if (*at == '\n') *at = ' ';
  PJRT_Error_Destroy_Args destroy = RT_PJRT(PJRT_Error_Destroy_Args, .error = error);
  api->PJRT_Error_Destroy(&destroy);
  return false;
}

bool rt_xla_await(const PJRT_Api *api, PJRT_Event *event, const char *what, struct problem *problem) {
  if (event == NULL) return true;
  PJRT_Event_Await_Args await = RT_PJRT(PJRT_Event_Await_Args, .event = event);
  const bool good = rt_xla_good(api, api->PJRT_Event_Await(&await), what, problem);
  PJRT_Event_Destroy_Args destroy = RT_PJRT(PJRT_Event_Destroy_Args, .event = event);
  struct problem other;
  return rt_xla_good(api, api->PJRT_Event_Destroy(&destroy), what, good ? problem : &other) && good;
}
