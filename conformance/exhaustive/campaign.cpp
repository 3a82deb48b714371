#include "conformance/exhaustive/campaign.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <mutex>
#include <sstream>

#include "conformance/runner/costs.h"
#include "conformance/runner/run.h"
#include "reference/layout/tensor.h"

namespace kvcts {
namespace {

using steady = std::chrono::steady_clock;

double seconds_since(steady::time_point start) {
  return std::chrono::duration<double>(steady::now() - start).count();
}

// The inputs of a piece.
sweep_range range_of(const sweep& s, std::uint64_t piece) {
  const std::uint64_t first = piece * s.piece;
  return {first, std::min(s.piece, s.inputs - first), 1};
}

std::string one_line(std::string text) {
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < 0x20) c = ' ';
  }
  return text;
}

[[noreturn]] void refuse(const std::string& path, const std::string& why) {
  throw input_error(fmt::format("{}: {}", path, why));
}

}  // namespace

void sweep_finding::add(const sweep_finding& later) {
  inputs += later.inputs;
  if (mismatches == 0) first = later.first;
  mismatches += later.mismatches;
}

double measured_rate(const sweep& s) {
  constexpr double enough = 0.02;
  const bool large = s.inputs > std::uint64_t{1} << 24;
  s.check({0, 1, 1});  // reads and makes tables
  for (std::uint64_t count = std::min<std::uint64_t>(64, s.inputs);; count *= 4) {
    count = std::min(count, std::min(s.inputs, s.piece));
    double seconds = 1e9;
    for (int time = 0; time < 3 && seconds > enough / 4; ++time) {  // others use the machine too
      const steady::time_point start = steady::now();
      s.check(large ? sweep_range{s.inputs / 10 * 3, count, 1}
                    : sweep_range{0, count, s.inputs / count});
      seconds = std::min(seconds, seconds_since(start));
    }
    if (seconds > enough || count >= std::min(s.inputs, s.piece)) {
      return seconds * 1e9 / static_cast<double>(count);
    }
  }
}

std::vector<sweep_piece> pieces_of(const std::vector<sweep>& sweeps, const shard& part) {
  std::vector<sweep_piece> all;
  std::vector<std::uint64_t> costs;
  for (std::size_t s = 0; s < sweeps.size(); ++s) {
    for (std::uint64_t piece = 0; piece < sweeps[s].pieces(); ++piece) {
      all.push_back({s, piece});
      costs.push_back(cost_of_inputs(sweeps[s].name, range_of(sweeps[s], piece).count));
    }
  }
  std::vector<sweep_piece> mine;
  for (const std::size_t i : items_of(part, costs)) mine.push_back(all[i]);
  return mine;
}

sweep_checkpoint::sweep_checkpoint(const std::string& path, const std::string& work) : path_(path) {
  if (path.empty()) return;
  file_ = open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (file_ < 0) refuse(path, std::string("cannot be written: ") + std::strerror(errno));
  try {
    if (flock(file_, LOCK_EX | LOCK_NB) != 0) {
      refuse(path, "is in use by another kvcts: wait for it, or name another --checkpoint");
    }
    read(path, work);
  } catch (...) {
    close(file_);
    throw;
  }
}

sweep_checkpoint::~sweep_checkpoint() {
  if (file_ >= 0) close(file_);
}

void sweep_checkpoint::read(const std::string& path, const std::string& work) {
  std::string text;
  char piece[65536];
  for (ssize_t got = ::read(file_, piece, sizeof piece); got != 0;
       got = ::read(file_, piece, sizeof piece)) {
    if (got < 0) refuse(path, std::string("cannot be read: ") + std::strerror(errno));
    text.append(piece, static_cast<std::size_t>(got));
  }
  const std::string header = "kvcts-exhaustive 1 " + work;
  // What is cut short was never finished.
  text.erase(text.find_last_of('\n') == std::string::npos ? 0 : text.find_last_of('\n') + 1);
  const bool cut = ftruncate(file_, static_cast<off_t>(text.size())) == 0;
  if (!cut) refuse(path, std::string("cannot be written: ") + std::strerror(errno));
  if (text.empty()) {
    const std::string line = header + "\n";
    if (write(file_, line.data(), line.size()) != static_cast<ssize_t>(line.size())) {
      refuse(path, std::string("cannot be written: ") + std::strerror(errno));
    }
    return;
  }
  std::istringstream lines(text);
  std::string line;
  std::getline(lines, line);
  if (line.rfind("kvcts-exhaustive ", 0) != 0) {
    refuse(path, "is no checkpoint of kvcts exhaustive: name another --checkpoint");
  }
  if (line != header) {
    refuse(path,
           "was made by another build, candidate or profile: delete it, or name another "
           "--checkpoint");
  }
  for (int number = 2; std::getline(lines, line); ++number) {
    std::istringstream fields(line);
    std::string name;
    std::uint64_t at = 0;
    finished_piece one;
    fields >> name >> at >> one.found.inputs >> one.found.mismatches >> one.seconds;
    if (!fields) refuse(path, fmt::format("line {} is damaged: delete the file", number));
    fields.ignore(1);
    std::getline(fields, one.found.first);
    known_[{name, at}] = std::move(one);
  }
}

const finished_piece* sweep_checkpoint::find(const std::string& sweep, std::uint64_t piece) const {
  const auto found = known_.find({sweep, piece});
  return found == known_.end() ? nullptr : &found->second;
}

void sweep_checkpoint::add(const std::string& sweep, std::uint64_t piece,
                           const finished_piece& finished) {
  if (file_ < 0) return;
  const std::string line =
      fmt::format("{} {} {} {} {:.6f} {}\n", sweep, piece, finished.found.inputs,
                  finished.found.mismatches, finished.seconds, one_line(finished.found.first));
  if (write(file_, line.data(), line.size()) != static_cast<ssize_t>(line.size()) ||
      fdatasync(file_) != 0) {
    refuse(path_, std::string("cannot be written: ") + std::strerror(errno));
  }
}

std::vector<sweep_result> run_campaign(const std::vector<sweep>& sweeps,
                                       sweep_checkpoint& checkpoint,
                                       const campaign_options& options) {
  const std::vector<sweep_piece> pieces = pieces_of(sweeps, options.part);
  std::vector<finished_piece> done(pieces.size());
  std::vector<std::size_t> left(sweeps.size(), 0);
  for (const sweep_piece& p : pieces) ++left[p.sweep];

  // Of the pieces of a sweep, in their order: which mismatch is the first does not depend on time.
  const auto result_of = [&](std::size_t number) {
    sweep_finding all;
    sweep_result made;
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      if (pieces[i].sweep != number) continue;
      if (all.mismatches == 0) made.first_piece = pieces[i].piece;
      all.add(done[i].found);
      made.seconds += done[i].seconds;
    }
    made.name = sweeps[number].name;
    made.text = sweeps[number].text;
    made.inputs = all.inputs;
    made.inputs_in_all = sweeps[number].inputs;
    made.mismatches = all.mismatches;
    if (all.mismatches == 0) made.first_piece = 0;
    made.first_mismatch = one_line(all.first);
    return made;
  };

  std::mutex guard;
  for_each_parallel(pieces.size(), options.threads, [&](std::size_t i) {
    const sweep_piece& p = pieces[i];
    const sweep& s = sweeps[p.sweep];
    finished_piece one;
    const finished_piece* known = checkpoint.find(s.name, p.piece);
    if (known != nullptr) {
      one = *known;
    } else {
      const steady::time_point start = steady::now();
      one.found = s.check(range_of(s, p.piece));
      one.seconds = seconds_since(start);
    }
    const std::lock_guard<std::mutex> hold(guard);
    if (known == nullptr) checkpoint.add(s.name, p.piece, one);
    done[i] = std::move(one);
    if (options.progress) options.progress(p);
    if (--left[p.sweep] == 0 && options.finished) options.finished(result_of(p.sweep));
  });

  std::vector<sweep_result> results;
  for (std::size_t s = 0; s < sweeps.size(); ++s) results.push_back(result_of(s));
  return results;
}

}  // namespace kvcts
