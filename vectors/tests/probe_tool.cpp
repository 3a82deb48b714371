// A program with the subcommand `probe`, and with the two faults that a crashing HDF5 library
// shows.
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <string_view>

#include "vectors/probe.h"

int main(int argc, char** argv) {
  if (argc != 3 || std::string_view(argv[1]) != "probe") {
    std::fputs("usage: kvcts_probe_tool probe FILE\n", stderr);
    return 1;
  }
  const std::string_view file = argv[2];
  if (file == "crash") {
    std::signal(SIGSEGV, SIG_DFL);
    std::raise(SIGSEGV);
  }
  if (file == "hang") {
    for (;;) ::pause();
  }
  return kvcts::probe_main(argv[2]);
}
