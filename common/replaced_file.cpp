#include "common/replaced_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace kvcts {
namespace {

std::string target_of(const std::string& path) {
  char* resolved = ::realpath(path.c_str(), nullptr);
  if (resolved == nullptr) return path;  // nothing is there yet
  std::string target(resolved);
  std::free(resolved);
  return target;
}

}  // namespace

// Two processes have two of them.
replaced_file::replaced_file(std::string path)
    : path_(std::move(path)),
      target_(target_of(path_)),
      temporary_(target_ + "." + std::to_string(::getpid()) + ".tmp") {}

replaced_file::~replaced_file() {
  if (!is_put_ && !temporary_.empty()) ::unlink(temporary_.c_str());
}

replaced_file::replaced_file(replaced_file&& other) noexcept
    : path_(std::move(other.path_)),
      target_(std::move(other.target_)),
      temporary_(std::exchange(other.temporary_, {})),
      is_put_(other.is_put_) {}

std::string replaced_file::write(std::string_view text) const {
  struct stat there {};
  if (::stat(target_.c_str(), &there) == 0 && !S_ISREG(there.st_mode)) {
    return S_ISDIR(there.st_mode) ? "it is a folder" : "it is there and no regular file";
  }
  const int file =
      ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0666);
  if (file < 0) return std::strerror(errno);
  std::string why;
  while (!text.empty() && why.empty()) {
    const ssize_t written = ::write(file, text.data(), text.size());
    if (written >= 0) {
      text.remove_prefix(static_cast<std::size_t>(written));
    } else if (errno != EINTR) {
      why = std::strerror(errno);
    }
  }
  if (::close(file) != 0 && why.empty()) why = std::strerror(errno);
  return why;
}

std::string replaced_file::put() {
  if (std::rename(temporary_.c_str(), target_.c_str()) != 0) return std::strerror(errno);
  is_put_ = true;
  return "";
}

std::string replace_file(const std::string& path, std::string_view text) {
  replaced_file file(path);
  std::string why = file.write(text);
  return why.empty() ? file.put() : why;
}

}  // namespace kvcts
