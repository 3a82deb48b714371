#include "vectors/tests/hdf5_edit.h"

#include <stdexcept>

namespace kvcts::testing_tools {
namespace {

hid_t made(hid_t id) {
  if (id < 0) throw std::runtime_error("HDF5 refused an edit");
  return id;
}
void done(herr_t status) {
  if (status < 0) throw std::runtime_error("HDF5 refused an edit");
}

}  // namespace

extern "C" {
static herr_t collect_times(hid_t, const char*, const H5O_info_t* info, void* to) {
  auto* times = static_cast<std::vector<long>*>(to);
  times->insert(times->end(), {info->atime, info->mtime, info->ctime, info->btime});
  return 0;
}
}

editor::editor(const std::string& path)
    : file_(made(H5Fopen(path.c_str(), H5F_ACC_RDWR, H5P_DEFAULT))) {}

editor::~editor() { H5Fclose(file_); }

void editor::remove(const std::string& object) {
  done(H5Ldelete(file_, object.c_str(), H5P_DEFAULT));
}

void editor::remove_attribute(const std::string& object, const std::string& name) {
  done(H5Adelete_by_name(file_, object.c_str(), name.c_str(), H5P_DEFAULT));
}

void editor::dataset(const std::string& object, hid_t type, const std::vector<hsize_t>& shape,
                     const void* from) {
  if (H5Lexists(file_, object.c_str(), H5P_DEFAULT) > 0) remove(object);
  const hid_t space =
      made(shape.empty() ? H5Screate(H5S_SCALAR)
                         : H5Screate_simple(static_cast<int>(shape.size()), shape.data(), nullptr));
  const hid_t set =
      made(H5Dcreate2(file_, object.c_str(), type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
  if (from != nullptr) done(H5Dwrite(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, from));
  H5Dclose(set);
  H5Sclose(space);
}

void editor::raw_attribute(const std::string& object, const std::string& name, hid_t type,
                           hid_t memory, const std::vector<hsize_t>& shape, const void* from) {
  if (H5Aexists_by_name(file_, object.c_str(), name.c_str(), H5P_DEFAULT) > 0) {
    remove_attribute(object, name);
  }
  const hid_t space =
      made(shape.empty() ? H5Screate(H5S_SCALAR)
                         : H5Screate_simple(static_cast<int>(shape.size()), shape.data(), nullptr));
  const hid_t a = made(H5Acreate_by_name(file_, object.c_str(), name.c_str(), type, space,
                                         H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
  if (from != nullptr) done(H5Awrite(a, memory, from));
  H5Aclose(a);
  H5Sclose(space);
}

void editor::attribute(const std::string& object, const std::string& name, std::int64_t value,
                       hid_t type) {
  raw_attribute(object, name, type, H5T_NATIVE_INT64, {}, &value);
}

void editor::attribute(const std::string& object, const std::string& name, double value,
                       hid_t type) {
  raw_attribute(object, name, type, H5T_NATIVE_DOUBLE, {}, &value);
}

void editor::attribute(const std::string& object, const std::string& name,
                       const std::vector<std::int64_t>& values, hid_t type) {
  raw_attribute(object, name, type, H5T_NATIVE_INT64, {values.size()}, values.data());
}

void editor::fixed_text(const std::string& object, const std::string& name, const std::string& text,
                        H5T_str_t padding, std::size_t length) {
  const hid_t type = made(H5Tcopy(H5T_C_S1));
  const std::size_t size = length == 0 ? text.size() : length;
  done(H5Tset_size(type, size));
  done(H5Tset_strpad(type, padding));
  std::string padded = text;
  padded.resize(size, padding == H5T_STR_SPACEPAD ? ' ' : '\0');
  raw_attribute(object, name, type, type, {}, padded.data());
  H5Tclose(type);
}

void editor::variable_text(const std::string& object, const std::string& name,
                           const std::string& text) {
  const hid_t type = made(H5Tcopy(H5T_C_S1));
  done(H5Tset_size(type, H5T_VARIABLE));
  done(H5Tset_cset(type, H5T_CSET_UTF8));
  const char* pointer = text.c_str();
  raw_attribute(object, name, type, type, {}, &pointer);
  H5Tclose(type);
}

void editor::variable_texts(const std::string& object, const std::string& name,
                            const std::vector<std::string>& texts) {
  const hid_t type = made(H5Tcopy(H5T_C_S1));
  done(H5Tset_size(type, H5T_VARIABLE));
  std::vector<const char*> pointers;
  for (const std::string& text : texts) pointers.push_back(text.c_str());
  raw_attribute(object, name, type, type, {pointers.size()}, pointers.data());
  H5Tclose(type);
}

std::string object_token(const std::string& path, const std::string& object) {
  const hid_t file = made(H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT));
  H5O_info_t info{};
  const herr_t status = H5Oget_info_by_name(file, object.c_str(), &info, H5P_DEFAULT);
  H5Fclose(file);
  done(status);
  return std::to_string(info.addr);
}

std::vector<long> object_times(const std::string& path) {
  std::vector<long> times;
  const hid_t file = made(H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT));
  const herr_t status = H5Ovisit(file, H5_INDEX_NAME, H5_ITER_NATIVE, collect_times, &times);
  H5Fclose(file);
  done(status);
  return times;
}

}  // namespace kvcts::testing_tools
