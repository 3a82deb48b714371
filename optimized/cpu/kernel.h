// What each cpu/<kernel>.cpp includes. These files are compiled once a target, with KVCTS_TARGET
// and KVCTS_VECTOR_BYTES defined.
#pragma once

#include "optimized/cpu/targets.h"
#include "optimized/warp/group.h"
