/* Closes descriptors that are not its own. */
#include <unistd.h>

#include "conformance/tests/candidates/fused_layout.h"

static kvcts_answer misbehave(const kvcts_call* call) {
  (void)call;
  for (int fd = 0; fd < 1024; ++fd) close(fd);
  return KVCTS_OK;
}
