/* Describes itself and exports nothing that runs. */
#include "conformance/candidate/kvcts_candidate.h"

KVCTS_EXPORT const kvcts_candidate_info* kvcts_candidate_describe(void) { return NULL; }
