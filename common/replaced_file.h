// A file that is there whole or not at all: written beside its place, then renamed. Where the place
// is a link, what it points to is replaced; what is no regular file stays.
#pragma once

#include <string>
#include <string_view>

namespace kvcts {

class replaced_file {
 public:
  // Nothing is written yet.
  explicit replaced_file(std::string path);
  // Takes the temporary away, unless it was put in place.
  ~replaced_file();
  replaced_file(replaced_file&& other) noexcept;
  replaced_file(const replaced_file&) = delete;
  replaced_file& operator=(const replaced_file&) = delete;

  const std::string& path() const { return path_; }
  const std::string& temporary() const { return temporary_; }

  // Both give nothing where it is done, else why not, in the system's words.
  std::string write(std::string_view text) const;  // to the temporary
  std::string put();

 private:
  std::string path_, target_, temporary_;
  bool is_put_ = false;
};

// Writes and puts.
std::string replace_file(const std::string& path, std::string_view text);

}  // namespace kvcts
