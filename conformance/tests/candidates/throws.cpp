// Lets an exception out.
#include <stdexcept>

#include "conformance/tests/candidates/fused_layout.h"

static kvcts_answer misbehave(const kvcts_call*) {
  throw std::runtime_error("no kernel for this size");
}
