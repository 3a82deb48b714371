// Edits of a vector file through the HDF5 library, to make the files that other programs write and
// the ones that nobody should.
#pragma once

#include <hdf5.h>

#include <cstdint>
#include <string>
#include <vector>

namespace kvcts::testing_tools {

class editor {
 public:
  explicit editor(const std::string& path);
  ~editor();
  editor(const editor&) = delete;
  editor& operator=(const editor&) = delete;

  hid_t file() const { return file_; }
  void remove(const std::string& object);
  void remove_attribute(const std::string& object, const std::string& name);
  // A dataset of the stored type, from memory of the same type, in place of what is there.
  void dataset(const std::string& object, hid_t type, const std::vector<hsize_t>& shape,
               const void* from);
  void attribute(const std::string& object, const std::string& name, std::int64_t value,
                 hid_t type = H5T_STD_I64LE);
  void attribute(const std::string& object, const std::string& name, double value,
                 hid_t type = H5T_IEEE_F64LE);
  void attribute(const std::string& object, const std::string& name,
                 const std::vector<std::int64_t>& values, hid_t type = H5T_STD_I64LE);
  void fixed_text(const std::string& object, const std::string& name, const std::string& text,
                  H5T_str_t padding = H5T_STR_NULLPAD, std::size_t length = 0);
  void variable_text(const std::string& object, const std::string& name, const std::string& text);
  void variable_texts(const std::string& object, const std::string& name,
                      const std::vector<std::string>& texts);
  void raw_attribute(const std::string& object, const std::string& name, hid_t type, hid_t memory,
                     const std::vector<hsize_t>& shape, const void* from);

 private:
  hid_t file_;
};

// The address in the file of the object, which hard links share.
std::string object_token(const std::string& path, const std::string& object);

// The four times of every object of a file, in seconds; 0 where an object has none.
std::vector<long> object_times(const std::string& path);

}  // namespace kvcts::testing_tools
