/* Opens a file in each call and closes none. */
#include <fcntl.h>

#include "conformance/tests/candidates/fused_layout.h"

static kvcts_answer misbehave(const kvcts_call* call) {
  (void)call;
  return open("/dev/null", O_RDONLY) >= 0 ? KVCTS_OK : KVCTS_ERROR;
}
