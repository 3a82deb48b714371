#include <hdf5.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <map>
#include <optional>
#include <stdexcept>
#include <tuple>
#include <utility>

#include "common/replaced_file.h"
#include "vectors/file.h"
#include "vectors/hdf5_object.h"
#include "vectors/sha256.h"

namespace kvcts {
namespace {

using hdf5::handle;

// Storage from here on is chunked and compressed.
constexpr std::size_t compressed_from = 4096;
constexpr std::size_t chunk_bytes = std::size_t{1} << 20;
constexpr unsigned gzip_level = 6;

[[noreturn]] void fail_write(const std::string& path, const std::string& why) {
  throw input_error(path + ": cannot be written: " + why +
                    ": choose a directory with room that you may write to");
}

hid_t stored_type(dtype type) {
  switch (type) {
    case dtype::bf16:
      return H5T_STD_U16LE;
    case dtype::f32:
      return H5T_IEEE_F32LE;
    case dtype::i32:
      return H5T_STD_I32LE;
    case dtype::i64:
      return H5T_STD_I64LE;
    default:
      return H5T_STD_U8LE;
  }
}

hid_t memory_type(dtype type) {
  switch (type) {
    case dtype::bf16:
      return H5T_NATIVE_UINT16;
    case dtype::f32:
      return H5T_NATIVE_FLOAT;
    case dtype::i32:
      return H5T_NATIVE_INT32;
    case dtype::i64:
      return H5T_NATIVE_INT64;
    default:
      return H5T_NATIVE_UINT8;
  }
}

// Page views and updated arguments are stored flat, and what is not dense must be.
bool stored_flat(const kernel_contract* contract, const buffer& b) {
  if (!is_dense(b.at)) return true;
  if (b.bytes.size() != static_cast<std::size_t>(count(b.at.shape)) * size_of(b.type)) return true;
  const argument_spec* spec = contract == nullptr ? nullptr : contract->argument(b.name);
  return spec != nullptr &&
         (spec->direction == role::updated || spec->strides == stride_rule::pages);
}

// Rows along the leading dimensions, whole along the last ones, about chunk_bytes in all.
std::vector<hsize_t> chunk_of(const std::vector<hsize_t>& shape, std::size_t element) {
  std::vector<hsize_t> chunk = shape;
  for (hsize_t& dimension : chunk) {
    hsize_t bytes = element;
    for (const hsize_t d : chunk) bytes *= d;
    if (bytes <= chunk_bytes) break;
    const hsize_t rest = bytes / dimension;
    dimension = std::max<hsize_t>(1, chunk_bytes / rest);
  }
  return chunk;
}

bool usable_name(const std::string& name) {
  return !name.empty() && name != "." && name.find('/') == std::string::npos &&
         name.find('\0') == std::string::npos;
}

}  // namespace

struct vector_writer::state {
  state() = default;
  state(const state&) = delete;
  state& operator=(const state&) = delete;

  std::string path;
  std::optional<replaced_file> place;  // gone after the handles
  handle file;
  handle kernel_group;
  std::string kernel, name;  // of the last case
  bool begun = false;
  // Content (dtype, form, bytes) -> where it was stored first.
  std::map<std::string, std::string> stored;

  [[noreturn]] void fail() const { fail_write(path, "HDF5 failed" + hdf5::reason()); }
  hid_t made(hid_t id) const {
    if (id < 0) fail();
    return id;
  }
  void done(herr_t status) const {
    if (status < 0) fail();
  }

  // Creation order and times are left out of every object, so that equal content is equal bytes.
  handle create_group(hid_t parent, const std::string& group_name) const {
    const handle list(made(H5Pcreate(H5P_GROUP_CREATE)));
    done(H5Pset_obj_track_times(list.id(), false));
    done(H5Pset_attr_phase_change(list.id(), 64, 0));
    return handle(
        made(H5Gcreate2(parent, group_name.c_str(), H5P_DEFAULT, list.id(), H5P_DEFAULT)));
  }

  void put(hid_t object, const std::string& attribute, hid_t type, hid_t memory, hid_t space,
           const void* from) const {
    const handle a(
        made(H5Acreate2(object, attribute.c_str(), type, space, H5P_DEFAULT, H5P_DEFAULT)));
    if (from != nullptr) done(H5Awrite(a.id(), memory, from));
  }
  void put(hid_t object, const std::string& attribute, std::int64_t value) const {
    const handle space(made(H5Screate(H5S_SCALAR)));
    put(object, attribute, H5T_STD_I64LE, H5T_NATIVE_INT64, space.id(), &value);
  }
  void put_unsigned(hid_t object, const std::string& attribute, std::uint64_t value) const {
    const handle space(made(H5Screate(H5S_SCALAR)));
    put(object, attribute, H5T_STD_U64LE, H5T_NATIVE_UINT64, space.id(), &value);
  }
  void put_boolean(hid_t object, const std::string& attribute, bool value) const {
    const handle space(made(H5Screate(H5S_SCALAR)));
    const std::uint8_t byte = value ? 1 : 0;
    put(object, attribute, H5T_STD_U8LE, H5T_NATIVE_UINT8, space.id(), &byte);
  }
  void put(hid_t object, const std::string& attribute, double value) const {
    const handle space(made(H5Screate(H5S_SCALAR)));
    put(object, attribute, H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, space.id(), &value);
  }
  // Fixed length, padded with zeros.
  handle text_type(std::size_t length, bool ascii) const {
    handle type(made(H5Tcopy(H5T_C_S1)));
    done(H5Tset_size(type.id(), std::max<std::size_t>(length, 1)));
    done(H5Tset_strpad(type.id(), H5T_STR_NULLPAD));
    done(H5Tset_cset(type.id(), ascii ? H5T_CSET_ASCII : H5T_CSET_UTF8));
    return type;
  }
  static bool is_ascii(const std::string& text) {
    return std::all_of(text.begin(), text.end(),
                       [](char c) { return static_cast<unsigned char>(c) < 0x80; });
  }
  void put(hid_t object, const std::string& attribute, const std::string& text) const {
    const handle type = text_type(text.size(), is_ascii(text));
    const handle space(made(H5Screate(H5S_SCALAR)));
    put(object, attribute, type.id(), type.id(), space.id(), text.c_str());
  }
  void put(hid_t object, const std::string& attribute,
           const std::vector<std::string>& texts) const {
    std::size_t longest = 1;
    bool ascii = true;
    for (const std::string& text : texts) {
      longest = std::max(longest, text.size());
      ascii = ascii && is_ascii(text);
    }
    std::string padded;
    for (const std::string& text : texts) {
      padded += text;
      padded.append(longest - text.size(), '\0');
    }
    const handle type = text_type(longest, ascii);
    const hsize_t size = texts.size();
    const handle space(made(H5Screate_simple(1, &size, nullptr)));
    put(object, attribute, type.id(), type.id(), space.id(),
        texts.empty() ? nullptr : padded.data());
  }
  void put(hid_t object, const std::string& attribute,
           const std::vector<std::int64_t>& values) const {
    const hsize_t size = values.size();
    const handle space(made(H5Screate_simple(1, &size, nullptr)));
    put(object, attribute, H5T_STD_I64LE, H5T_NATIVE_INT64, space.id(),
        values.empty() ? nullptr : values.data());
  }
  void put(hid_t object, const std::string& attribute, const attribute_value& value) const {
    if (const auto* integer = std::get_if<std::int64_t>(&value)) {
      put(object, attribute, *integer);
    } else if (const auto* real = std::get_if<double>(&value)) {
      put(object, attribute, *real);
    } else {
      put(object, attribute, std::get<std::string>(value));
    }
  }

  void write_root(const suite_info& info) const {
    put(file.id(), "schema", std::string("kvcts-vectors"));
    put(file.id(), "schema_version", std::int64_t{schema_version});
    put(file.id(), "profile", info.profile);
    put(file.id(), "producer", info.producer);
    put_unsigned(file.id(), "seed", info.seed);
    for (const auto& [attribute, value] : info.others) put(file.id(), attribute, value);
  }

  static void check_buffer(const test_case& c, const buffer& b) {
    const std::size_t element = size_of(b.type);
    const auto reached = static_cast<std::size_t>(reach(b.at));
    if (!usable_name(b.name) || b.bytes.size() % element != 0 ||
        b.bytes.size() / element < reached || b.at.shape.size() != b.at.strides.size()) {
      throw std::logic_error("vector_writer: " + c.kernel + "/" + c.name + "/" + b.name +
                             ": extent and storage do not fit");
    }
  }

  // Two datasets of one key are one dataset: same stored type, dtype name, form and bytes.
  static std::string key_of(const buffer& b, bool flat) {
    sha256_stream key;
    std::string head = std::string(name_of(b.type)) + (flat ? " flat" : " dense");
    for (const std::int64_t d : b.at.shape) head.append(" ").append(std::to_string(d));
    if (flat) {
      head += " by";
      for (const std::int64_t s : b.at.strides) head.append(" ").append(std::to_string(s));
      head += " from " + std::to_string(b.at.offset);
    }
    head += " bytes " + std::to_string(b.bytes.size()) + ":";
    key.add(head.data(), head.size());
    key.add(b.bytes.data(), b.bytes.size());
    return key.finish();
  }

  void write_buffer(hid_t group, const std::string& group_path, const test_case& c, const buffer& b,
                    const kernel_contract* contract) {
    check_buffer(c, b);
    const bool flat = stored_flat(contract, b);
    const std::string own_path = group_path + "/" + b.name;
    const auto [first, is_new] = stored.emplace(key_of(b, flat), own_path);
    if (!is_new) {
      done(H5Lcreate_hard(file.id(), first->second.c_str(), group, b.name.c_str(), H5P_DEFAULT,
                          H5P_DEFAULT));
      return;
    }
    const std::size_t element = size_of(b.type);
    std::vector<hsize_t> shape;
    if (flat) {
      shape.push_back(b.bytes.size() / element);
    } else {
      for (const std::int64_t d : b.at.shape) shape.push_back(static_cast<hsize_t>(d));
    }
    const handle list(made(H5Pcreate(H5P_DATASET_CREATE)));
    done(H5Pset_obj_track_times(list.id(), false));
    done(H5Pset_fill_time(list.id(), H5D_FILL_TIME_NEVER));
    if (b.bytes.size() >= compressed_from) {
      const std::vector<hsize_t> chunk = chunk_of(shape, element);
      done(H5Pset_chunk(list.id(), static_cast<int>(chunk.size()), chunk.data()));
      if (element > 1) done(H5Pset_shuffle(list.id()));
      done(H5Pset_deflate(list.id(), gzip_level));
    }
    const handle space(made(
        shape.empty() ? H5Screate(H5S_SCALAR)
                      : H5Screate_simple(static_cast<int>(shape.size()), shape.data(), nullptr)));
    const handle dataset(made(H5Dcreate2(group, b.name.c_str(), stored_type(b.type), space.id(),
                                         H5P_DEFAULT, list.id(), H5P_DEFAULT)));
    if (!b.bytes.empty()) {
      done(H5Dwrite(dataset.id(), memory_type(b.type), H5S_ALL, H5S_ALL, H5P_DEFAULT,
                    b.bytes.data()));
    }
    put(dataset.id(), "dtype", std::string(name_of(b.type)));
    if (flat) {
      put(dataset.id(), "shape", b.at.shape);
      put(dataset.id(), "strides", b.at.strides);
      put(dataset.id(), "offset", b.at.offset);
    }
  }

  void write_buffers(hid_t case_group, const std::string& case_path, const std::string& group_name,
                     const test_case& c, const std::vector<buffer>& buffers) {
    const handle group = create_group(case_group, group_name);
    std::vector<const buffer*> sorted;
    for (const buffer& b : buffers) sorted.push_back(&b);
    std::sort(sorted.begin(), sorted.end(),
              [](const buffer* a, const buffer* b) { return a->name < b->name; });
    const kernel_contract* contract = find_contract(c.kernel);
    for (const buffer* b : sorted) {
      write_buffer(group.id(), case_path + "/" + group_name, c, *b, contract);
    }
  }
};

vector_writer::vector_writer(const std::string& path, const suite_info& info)
    : state_(std::make_unique<state>()) {
  const hdf5::library_lock lock;
  state& s = *state_;
  s.path = path;
  // Opened once without HDF5, whose errors do not say why.
  s.place.emplace(path);
  const std::string why = s.place->write("");
  if (!why.empty()) fail_write(path, why);

  const handle access(s.made(H5Pcreate(H5P_FILE_ACCESS)));
  s.done(H5Pset_fclose_degree(access.id(), H5F_CLOSE_STRONG));
  // One fixed format, with checksums on metadata, that HDF5 1.8 and later read.
  s.done(H5Pset_libver_bounds(access.id(), H5F_LIBVER_V18, H5F_LIBVER_V18));
  const handle creation(s.made(H5Pcreate(H5P_FILE_CREATE)));
  s.done(H5Pset_obj_track_times(creation.id(), false));
  s.done(H5Pset_attr_phase_change(creation.id(), 64, 0));
  s.file =
      handle(H5Fcreate(s.place->temporary().c_str(), H5F_ACC_TRUNC, creation.id(), access.id()));
  if (!s.file.ok()) s.fail();
  s.write_root(info);
}

vector_writer::~vector_writer() {
  const hdf5::library_lock lock;
  state_.reset();
}

void vector_writer::add(const test_case& c) {
  const hdf5::library_lock lock;
  state& s = *state_;
  if (!usable_name(c.kernel) || !usable_name(c.name)) {
    throw std::logic_error("vector_writer: \"" + c.kernel + "/" + c.name + "\" names no case");
  }
  if (c.is_sparse()) {
    throw input_error(s.path + ": cannot hold " + c.kernel + "/" + c.name +
                      ", whose cache past 2 GiB is in memory only: leave out the cases with the "
                      "flag Past2GiB");
  }
  if (s.begun && std::tie(c.kernel, c.name) <= std::tie(s.kernel, s.name)) {
    throw std::logic_error("vector_writer: " + c.kernel + "/" + c.name + " comes after " +
                           s.kernel + "/" + s.name);
  }
  if (!s.begun || c.kernel != s.kernel) s.kernel_group = s.create_group(s.file.id(), c.kernel);
  s.begun = true;
  s.kernel = c.kernel;
  s.name = c.name;

  const handle group = s.create_group(s.kernel_group.id(), c.name);
  s.put(group.id(), "flags", c.flags);
  const kernel_contract* contract = find_contract(c.kernel);
  for (const auto& [name, value] : c.attributes) {
    const attribute_spec* spec = contract == nullptr ? nullptr : contract->attribute(name);
    const auto* integer = std::get_if<std::int64_t>(&value);
    if (spec != nullptr && spec->kind == attribute_kind::boolean && integer != nullptr) {
      s.put_boolean(group.id(), name, *integer != 0);
    } else {
      s.put(group.id(), name, value);
    }
  }
  const std::string path = "/" + c.kernel + "/" + c.name;
  s.write_buffers(group.id(), path, "inputs", c, c.inputs);
  s.write_buffers(group.id(), path, "expected", c, c.expected);
  if (!c.actual.empty()) s.write_buffers(group.id(), path, "actual", c, c.actual);
}

void vector_writer::finish() {
  const hdf5::library_lock lock;
  state& s = *state_;
  s.done(H5Fflush(s.file.id(), H5F_SCOPE_GLOBAL));
  s.kernel_group.close();
  if (!s.file.close()) s.fail();
  const std::string why = s.place->put();
  if (!why.empty()) fail_write(s.path, why);
}

void write_vectors(const std::string& path, const suite& s) {
  std::vector<const test_case*> sorted;
  for (const test_case& c : s.cases) sorted.push_back(&c);
  std::sort(sorted.begin(), sorted.end(), [](const test_case* a, const test_case* b) {
    return std::tie(a->kernel, a->name) < std::tie(b->kernel, b->name);
  });
  vector_writer writer(path, s.info);
  for (const test_case* c : sorted) writer.add(*c);
  writer.finish();
}

}  // namespace kvcts
