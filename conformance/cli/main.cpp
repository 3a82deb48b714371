#include "conformance/cli/commands.h"

int main(int argc, char** argv) { return kvcts::run_cli(argc, argv); }
