#include "reports/checkpoint.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>

#include "reference/layout/tensor.h"
#include "reports/reports.h"

namespace kvcts {
namespace {

using json = nlohmann::ordered_json;

constexpr const char* schema = "kvcts-checkpoint 1";

std::string header_of(const checkpoint_identity& whose) {
  json j = {{"schema", schema}};
  for (const auto& [what, value] : whose) j[what] = value;
  return j.dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
}

// What of the identity differs first: "seed 1, not 2"; nothing where the line is no header.
std::optional<std::string> difference_of(const std::string& found, const std::string& wanted) {
  const json a = json::parse(found, nullptr, false);
  const json b = json::parse(wanted);
  if (!a.is_object() || a.value("schema", json()) != schema) return {};
  for (const auto& [what, value] : b.items()) {
    const json there = a.value(what, json("nothing"));
    if (there == value) continue;
    return what + " " + (there.is_string() ? there.get<std::string>() : there.dump()) + ", not " +
           value.get<std::string>();
  }
  return "more than this program writes";
}

std::string content_of(int file) {
  std::string text;
  std::vector<char> piece(1 << 16);
  for (ssize_t got = 0; (got = read(file, piece.data(), piece.size())) > 0;) {
    text.append(piece.data(), static_cast<std::size_t>(got));
  }
  return text;
}

}  // namespace

checkpoint::checkpoint(std::string path, const checkpoint_identity& whose)
    : path_(std::move(path)), synced_(std::chrono::steady_clock::now()) {
  file_ = open(path_.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (file_ < 0) {
    throw input_error("checkpoint " + path_ + " cannot be written (" + std::strerror(errno) +
                      "): choose another file");
  }
  try {
    if (flock(file_, LOCK_EX | LOCK_NB) != 0) refuse("another run has it open: wait for its end");
    load(header_of(whose));
  } catch (...) {
    close(file_);
    throw;
  }
}

checkpoint::~checkpoint() {
  fdatasync(file_);
  close(file_);
}

void checkpoint::refuse(const std::string& why) const {
  throw input_error("checkpoint " + path_ + ": " + why);
}

void checkpoint::load(const std::string& header) {
  std::string text = content_of(file_);
  // A line is whole when its end is there.
  const std::size_t last = text.rfind('\n');
  const std::size_t whole = last == std::string::npos ? 0 : last + 1;
  if (whole == 0 && header.compare(0, text.size(), text) != 0) {
    refuse("is no checkpoint of kvcts: choose another file");
  }
  if (whole != text.size()) {
    if (ftruncate(file_, static_cast<off_t>(whole)) != 0) refuse("its torn end cannot be cut off");
    text.resize(whole);
  }
  if (text.empty()) {
    append(header);
    return;
  }
  std::size_t line = 0;
  for (std::size_t at = 0; at < text.size(); ++line) {
    const std::size_t end = text.find('\n', at) + 1;
    const std::string one = text.substr(at, end - at);
    at = end;
    if (line == 0) {
      if (one == header) continue;
      const std::optional<std::string> what = difference_of(one, header);
      if (!what) refuse("is no checkpoint of kvcts: choose another file");
      refuse("is another run's (" + *what + "): choose another file, or remove it");
    }
    try {
      case_result c = parse_case(one);
      if (!cases_.emplace(c.position, c).second) throw input_error("twice");
    } catch (const std::exception&) {
      refuse("is damaged in line " + std::to_string(line + 1) + ": remove it and run anew");
    }
  }
}

const case_result* checkpoint::find(std::uint64_t position, const std::string& kernel,
                                    const std::string& name) const {
  const auto found = cases_.find(position);
  if (found == cases_.end()) return nullptr;
  if (found->second.kernel != kernel || found->second.name != name) {
    refuse("holds " + found->second.kernel + "/" + found->second.name + " in the place of " +
           kernel + "/" + name + ": remove it and run anew");
  }
  return &found->second;
}

void checkpoint::append(const std::string& line) {
  std::size_t done = 0;
  while (done < line.size()) {
    const ssize_t wrote = write(file_, line.data() + done, line.size() - done);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) refuse(std::string("cannot be written (") + std::strerror(errno) + ")");
    done += static_cast<std::size_t>(wrote);
  }
}

void checkpoint::add(const case_result& c) {
  append(case_line(c));
  const auto now = std::chrono::steady_clock::now();
  if (now - synced_ < std::chrono::milliseconds(200)) return;
  fdatasync(file_);
  synced_ = now;
}

}  // namespace kvcts
