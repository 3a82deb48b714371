#include "vectors/hdf5_tree.h"

#include <hdf5.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <type_traits>
#include <utility>

namespace kvcts::hdf5 {
namespace {

static_assert(std::is_same_v<hid_t, handle::id_type>);
static_assert(max_rank == H5S_MAX_RANK);

// An attribute larger than this is no attribute of ours.
constexpr std::uint64_t attribute_limit = std::uint64_t{1} << 20;

std::recursive_mutex& library_mutex() {
  static std::recursive_mutex mutex;
  return mutex;
}

// "8-byte float", for messages.
std::string kind_of(hid_t type) {
  const std::string size = std::to_string(H5Tget_size(type)) + "-byte ";
  switch (H5Tget_class(type)) {
    case H5T_INTEGER:
      return size + (H5Tget_sign(type) == H5T_SGN_NONE ? "unsigned integer" : "integer");
    case H5T_FLOAT:
      return size + "float";
    case H5T_STRING:
      return "text";
    case H5T_ENUM:
      return size + "enumeration";
    case H5T_COMPOUND:
      return "compound";
    case H5T_OPAQUE:
      return size + "opaque";
    case H5T_ARRAY:
      return "array type";
    case H5T_REFERENCE:
      return "reference";
    default:
      return "another type";
  }
}

// A fixed-length string without its padding.
std::string unpadded(const char* from, std::size_t size, H5T_str_t padding) {
  std::string text(from, strnlen(from, size));
  if (padding == H5T_STR_SPACEPAD) text.erase(text.find_last_not_of(' ') + 1);
  return text;
}

struct open_attribute {
  handle attribute, type, space;
  std::uint64_t points = 0;
  std::size_t element = 0;
};

std::optional<open_attribute> find_attribute(const handle& object, const std::string& name,
                                             const place& at) {
  const htri_t there = H5Aexists(object.id(), name.c_str());
  if (there < 0) at.fail("attribute " + shortened(name) + " " + std::string(damaged) + reason());
  if (there == 0) return std::nullopt;
  open_attribute found;
  found.attribute = handle(H5Aopen(object.id(), name.c_str(), H5P_DEFAULT));
  if (found.attribute.ok()) {
    found.type = handle(H5Aget_type(found.attribute.id()));
    found.space = handle(H5Aget_space(found.attribute.id()));
  }
  if (!found.type.ok() || !found.space.ok()) {
    at.fail("attribute " + shortened(name) + " " + std::string(damaged) + reason());
  }
  const hssize_t points = H5Sget_simple_extent_npoints(found.space.id());
  found.points = points < 0 ? 0 : static_cast<std::uint64_t>(points);
  found.element = H5Tget_size(found.type.id());
  if (found.element == 0 || found.points > attribute_limit / found.element) {
    at.fail("attribute " + shortened(name) +
            " is larger than 1 MiB: keep attributes small and tensors in datasets");
  }
  return found;
}

// Reads every element in the memory type given. `type_bytes` is its size.
std::vector<char> read_raw(const open_attribute& from, hid_t memory_type, std::size_t type_bytes,
                           const std::string& name, const place& at) {
  std::vector<char> raw(static_cast<std::size_t>(from.points) * type_bytes);
  if (from.points != 0 && H5Aread(from.attribute.id(), memory_type, raw.data()) < 0) {
    at.fail("attribute " + shortened(name) + " " + std::string(damaged) + reason());
  }
  return raw;
}

std::int64_t widen(const char* from, std::size_t size, bool is_unsigned) {
  const auto* bytes = reinterpret_cast<const std::byte*>(from);
  switch (size) {
    case 1:
      return is_unsigned ? load<std::uint8_t>(bytes) : load<std::int8_t>(bytes);
    case 2:
      return is_unsigned ? load<std::uint16_t>(bytes) : load<std::int16_t>(bytes);
    case 4:
      return is_unsigned ? std::int64_t{load<std::uint32_t>(bytes)} : load<std::int32_t>(bytes);
    default:
      return load<std::int64_t>(bytes);
  }
}

// The memory type that takes the stored bits as they are, in this machine's byte order; invalid
// where the stored type is not that of the dtype. A sign does not matter: bits are bits.
handle memory_type_for(hid_t stored, dtype type) {
  const H5T_class_t kind = H5Tget_class(stored);
  const std::size_t size = H5Tget_size(stored);
  if (size != size_of(type)) return {};
  if (type == dtype::f32) {
    return kind == H5T_FLOAT ? handle(H5Tcopy(H5T_NATIVE_FLOAT)) : handle{};
  }
  if (kind == H5T_ENUM && type == dtype::boolean) {
    return handle(H5Tget_native_type(stored, H5T_DIR_ASCEND));
  }
  if (kind != H5T_INTEGER || H5Tget_precision(stored) != 8 * size) return {};
  const bool is_unsigned = H5Tget_sign(stored) == H5T_SGN_NONE;
  switch (size) {
    case 1:
      return handle(H5Tcopy(is_unsigned ? H5T_NATIVE_UINT8 : H5T_NATIVE_INT8));
    case 2:
      return handle(H5Tcopy(is_unsigned ? H5T_NATIVE_UINT16 : H5T_NATIVE_INT16));
    case 4:
      return handle(H5Tcopy(is_unsigned ? H5T_NATIVE_UINT32 : H5T_NATIVE_INT32));
    default:
      return handle(H5Tcopy(is_unsigned ? H5T_NATIVE_UINT64 : H5T_NATIVE_INT64));
  }
}

// Bytes that one read takes, where chunks do not say otherwise, and at most.
constexpr std::uint64_t piece_bytes = std::uint64_t{16} << 20;
constexpr std::uint64_t largest_piece = std::uint64_t{256} << 20;

// A chunk is decompressed whole, so a piece that ends inside one pays for it twice. `row` is the
// bytes of one index of the first dimension.
std::uint64_t piece_of(std::uint64_t chunk, std::uint64_t chunk_rows, std::uint64_t row) {
  std::uint64_t band = 0;
  if (__builtin_mul_overflow(chunk_rows, row, &band)) band = ~std::uint64_t{0};
  if (band == 0) return piece_bytes;
  if (band <= piece_bytes) return piece_bytes / band * band;
  const std::uint64_t whole = std::clamp(chunk, piece_bytes, largest_piece);
  return whole - whole % 8;
}

// Refuses data that lies outside the file, and filters that this HDF5 has not got. Gives the bytes
// of a piece.
std::uint64_t check_storage(hid_t dataset, const place& at, std::uint64_t row,
                            std::size_t element) {
  std::uint64_t piece = piece_bytes;
  const handle list(H5Dget_create_plist(dataset));
  if (!list.ok()) at.fail(std::string(damaged) + reason());
  if (H5Pget_external_count(list.id()) != 0) {
    at.fail("keeps its data in another file: store the data in this file");
  }
  const H5D_layout_t layout = H5Pget_layout(list.id());
  if (layout == H5D_VIRTUAL) {
    at.fail("is a virtual dataset: store the data itself");
  }
  if (layout == H5D_CHUNKED) {
    hsize_t chunk[max_rank] = {};
    const int rank = H5Pget_chunk(list.id(), static_cast<int>(max_rank), chunk);
    std::uint64_t bytes = element;
    for (int i = 0; i < rank && i < static_cast<int>(max_rank); ++i) {
      if (__builtin_mul_overflow(bytes, std::uint64_t{chunk[i]}, &bytes)) bytes = ~std::uint64_t{0};
    }
    if (rank > 0) piece = piece_of(bytes, chunk[0], row);
    const std::uint64_t budget = memory_limit();
    if (bytes > budget) {
      at.fail("has chunks of " + std::to_string(bytes) + " bytes, and " + std::to_string(budget) +
              " may be used: store it in smaller chunks");
    }
  }
  const int filters = H5Pget_nfilters(list.id());
  for (int i = 0; i < filters; ++i) {
    unsigned flags = 0;
    unsigned configuration = 0;
    std::size_t values = 0;
    char name[64] = {};
    const H5Z_filter_t filter = H5Pget_filter2(list.id(), static_cast<unsigned>(i), &flags, &values,
                                               nullptr, sizeof name - 1, name, &configuration);
    if (filter < 0) at.fail(std::string(damaged) + reason());
    if (H5Zfilter_avail(filter) <= 0) {
      at.fail("is compressed with filter " + std::to_string(filter) +
              ", which this HDF5 library lacks: use gzip");
    }
  }
  return piece;
}

extern "C" {
struct link_list {
  std::vector<std::pair<std::string, H5L_type_t>> links;
};
static herr_t collect_link(hid_t, const char* name, const H5L_info_t* info, void* to) {
  static_cast<link_list*>(to)->links.emplace_back(name, info->type);
  return 0;
}
static herr_t collect_attribute(hid_t, const char* name, const H5A_info_t*, void* to) {
  static_cast<std::vector<std::string>*>(to)->emplace_back(name);
  return 0;
}
static herr_t collect_reason(unsigned, const H5E_error2_t* error, void* to) {
  if (error->desc != nullptr && *error->desc != '\0') *static_cast<std::string*>(to) = error->desc;
  return 0;
}
}

void refuse_link(H5L_type_t type, const place& at) {
  if (type == H5L_TYPE_HARD) return;
  at.fail(std::string(type == H5L_TYPE_SOFT ? "is a soft link" : "is an external link") +
          ": store the object itself or a hard link");
}

// Opens a child and tells what is wrong with it where it is not of the kind wanted.
handle open_child(const handle& parent, const std::string& name, const place& at, H5I_type_t kind,
                  std::string_view what) {
  H5L_info_t info{};
  if (H5Lget_info(parent.id(), name.c_str(), &info, H5P_DEFAULT) < 0) {
    at.fail(std::string(damaged) + reason());
  }
  refuse_link(info.type, at);
  handle child(H5Oopen(parent.id(), name.c_str(), H5P_DEFAULT));
  if (!child.ok()) at.fail(std::string(damaged) + reason());
  const H5I_type_t found = H5Iget_type(child.id());
  if (found != kind) {
    const std::string_view is = found == H5I_GROUP     ? "a group"
                                : found == H5I_DATASET ? "a dataset"
                                                       : "a named type";
    at.fail("is " + std::string(is) + " where the schema has a " + std::string(what) +
            ": see docs/vectors.md");
  }
  return child;
}

// Number after "MemAvailable:" of /proc/meminfo, in bytes; 0 where there is none.
std::uint64_t available_memory() {
  std::ifstream in("/proc/meminfo");
  std::string key;
  std::uint64_t kib = 0;
  std::string unit;
  while (in >> key >> kib) {
    if (key == "MemAvailable:") return kib * 1024;
    std::getline(in, unit);
  }
  return 0;
}

std::optional<std::uint64_t> number_in(const char* path) {
  std::ifstream in(path);
  std::uint64_t value = 0;
  if (in >> value) return value;
  return std::nullopt;
}

}  // namespace

handle::handle(handle&& from) noexcept : id_(std::exchange(from.id_, -1)) {}

handle& handle::operator=(handle&& from) noexcept {
  if (this != &from) {
    close();
    id_ = std::exchange(from.id_, -1);
  }
  return *this;
}

handle::~handle() { close(); }

// Of any kind: the last reference closes.
bool handle::close() { return id_ < 0 || H5Idec_ref(std::exchange(id_, -1)) >= 0; }

library_lock::library_lock() : guard_(library_mutex()) {
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
}

std::string reason() {
  std::string innermost;
  // Downward ends at the innermost, which stays.
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_DOWNWARD, collect_reason, &innermost);
  return innermost.empty() ? "" : " (HDF5: " + shortened(innermost) + ")";
}

handle open_file(const place& at) {
  struct stat status {};
  if (::stat(at.file.c_str(), &status) != 0) {
    at.fail(std::string("cannot be opened: ") + std::strerror(errno) + ": name an HDF5 file");
  }
  if (!S_ISREG(status.st_mode)) at.fail("is not a regular file: name an HDF5 file");
  if (::access(at.file.c_str(), R_OK) != 0) {
    at.fail(std::string("cannot be opened: ") + std::strerror(errno) + ": allow reading it");
  }
  const htri_t is_hdf5 = H5Fis_hdf5(at.file.c_str());
  if (is_hdf5 == 0) {
    at.fail("is not an HDF5 file: name a vector file, see docs/vectors.md");
  }
  const handle access(H5Pcreate(H5P_FILE_ACCESS));
  H5Pset_fclose_degree(access.id(), H5F_CLOSE_STRONG);
#if H5_VERSION_GE(1, 12, 1) || (H5_VERSION_GE(1, 10, 7) && !H5_VERSION_GE(1, 12, 0))
  // Reads from file systems that cannot lock.
  H5Pset_file_locking(access.id(), true, true);
#endif
  handle file(H5Fopen(at.file.c_str(), H5F_ACC_RDONLY, access.id()));
  if (!file.ok()) {
    at.fail("is truncated or damaged HDF5, or open for writing elsewhere" + reason() +
            ": copy or write it again");
  }
  return file;
}

std::vector<std::string> names(const handle& group, const place& at) {
  link_list found;
  if (H5Literate(group.id(), H5_INDEX_NAME, H5_ITER_NATIVE, nullptr, collect_link, &found) < 0) {
    at.fail(std::string(damaged) + reason());
  }
  std::vector<std::string> sorted;
  for (const auto& [name, type] : found.links) {
    refuse_link(type, at.in(name));
    sorted.push_back(name);
  }
  std::sort(sorted.begin(), sorted.end());
  return sorted;
}

bool has(const handle& group, const std::string& name, const place& at) {
  const htri_t there = H5Lexists(group.id(), name.c_str(), H5P_DEFAULT);
  if (there < 0) at.fail(std::string(damaged) + reason());
  return there > 0;
}

handle open_group(const handle& parent, const std::string& name, const place& at) {
  return open_child(parent, name, at, H5I_GROUP, "group");
}

std::vector<std::string> attribute_names(const handle& object, const place& at) {
  std::vector<std::string> found;
  if (H5Aiterate2(object.id(), H5_INDEX_NAME, H5_ITER_NATIVE, nullptr, collect_attribute, &found) <
      0) {
    at.fail("has attributes that cannot be read: the file is damaged, write it again" + reason());
  }
  std::sort(found.begin(), found.end());
  return found;
}

std::optional<attribute_form> form_of(const handle& object, const std::string& name,
                                      const place& at) {
  const std::optional<open_attribute> a = find_attribute(object, name, at);
  if (!a) return std::nullopt;
  attribute_form form{attribute_kind::other, a->points, kind_of(a->type.id())};
  switch (H5Tget_class(a->type.id())) {
    case H5T_STRING:
      form.kind = attribute_kind::text;
      break;
    case H5T_FLOAT:
      form.kind = attribute_kind::real;
      break;
    case H5T_INTEGER:
    case H5T_ENUM:
      if (a->element <= 8) form.kind = attribute_kind::integer;
      break;
    default:
      break;
  }
  return form;
}

std::vector<std::string> read_texts(const handle& object, const std::string& name,
                                    const place& at) {
  const open_attribute from = *find_attribute(object, name, at);
  std::vector<std::string> texts;
  if (H5Tis_variable_str(from.type.id()) > 0) {
    const handle memory(H5Tcopy(H5T_C_S1));
    H5Tset_size(memory.id(), H5T_VARIABLE);
    H5Tset_cset(memory.id(), H5Tget_cset(from.type.id()));
    std::vector<char> raw = read_raw(from, memory.id(), sizeof(char*), name, at);
    for (std::uint64_t i = 0; i < from.points; ++i) {
      const char* text =
          load<const char*>(reinterpret_cast<const std::byte*>(raw.data()) + i * sizeof(char*));
      texts.emplace_back(text == nullptr ? "" : text);
    }
    if (from.points != 0) {
      H5Dvlen_reclaim(memory.id(), from.space.id(), H5P_DEFAULT, raw.data());
    }
    return texts;
  }
  const H5T_str_t padding = H5Tget_strpad(from.type.id());
  const std::vector<char> raw = read_raw(from, from.type.id(), from.element, name, at);
  for (std::uint64_t i = 0; i < from.points; ++i) {
    texts.push_back(unpadded(raw.data() + i * from.element, from.element, padding));
  }
  return texts;
}

std::optional<integers> read_integers(const handle& object, const std::string& name,
                                      const place& at) {
  const open_attribute from = *find_attribute(object, name, at);
  const H5T_class_t kind = H5Tget_class(from.type.id());
  if ((kind != H5T_INTEGER && kind != H5T_ENUM) || from.element > 8) return std::nullopt;
  const handle memory(H5Tget_native_type(from.type.id(), H5T_DIR_ASCEND));
  if (!memory.ok()) return std::nullopt;
  const handle base(kind == H5T_ENUM ? H5Tget_super(memory.id()) : H5Tcopy(memory.id()));
  const std::size_t size = H5Tget_size(memory.id());
  if (size != 1 && size != 2 && size != 4 && size != 8) return std::nullopt;
  integers found;
  found.is_unsigned = H5Tget_sign(base.id()) == H5T_SGN_NONE;
  const std::vector<char> raw = read_raw(from, memory.id(), size, name, at);
  for (std::uint64_t i = 0; i < from.points; ++i) {
    found.values.push_back(widen(raw.data() + i * size, size, found.is_unsigned));
  }
  return found;
}

double read_real(const handle& object, const std::string& name, const place& at) {
  const open_attribute from = *find_attribute(object, name, at);
  const std::vector<char> raw = read_raw(from, H5T_NATIVE_DOUBLE, sizeof(double), name, at);
  return load<double>(reinterpret_cast<const std::byte*>(raw.data()));
}

std::uint64_t memory_limit() {
  std::uint64_t free = available_memory();
  if (free == 0) {
    free = static_cast<std::uint64_t>(::sysconf(_SC_PHYS_PAGES)) *
           static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  }
  // A container's own limit.
  const std::optional<std::uint64_t> limit = number_in("/sys/fs/cgroup/memory.max");
  const std::optional<std::uint64_t> used = number_in("/sys/fs/cgroup/memory.current");
  if (limit && used) free = std::min(free, *limit > *used ? *limit - *used : 0);
  rlimit space{};
  if (::getrlimit(RLIMIT_AS, &space) == 0 && space.rlim_cur != RLIM_INFINITY) {
    free = std::min<std::uint64_t>(free, space.rlim_cur);
  }
  return free / 2;
}

stored_dataset::stored_dataset(const handle& group, const std::string& name, const place& at)
    : place_(at), dataset_(open_child(group, name, at, H5I_DATASET, "dataset")) {
  const handle stored(H5Dget_type(dataset_.id()));
  const handle space(H5Dget_space(dataset_.id()));
  if (!stored.ok() || !space.ok()) at.fail(std::string(damaged) + reason());
  type_ = kind_of(stored.id());
  if (H5Sget_simple_extent_type(space.id()) == H5S_NULL) return;
  hsize_t dims[max_rank] = {};
  const int rank = H5Sget_simple_extent_dims(space.id(), dims, nullptr);
  if (rank < 0) at.fail(std::string(damaged) + reason());
  shape_.emplace(dims, dims + rank);
}

bool stored_dataset::holds(dtype type) {
  const handle stored(H5Dget_type(dataset_.id()));
  if (!stored.ok()) place_.fail(std::string(damaged) + reason());
  memory_ = memory_type_for(stored.id(), type);
  return memory_.ok();
}

std::uint64_t stored_dataset::check_storage(std::uint64_t row, std::size_t element) const {
  return kvcts::hdf5::check_storage(dataset_.id(), place_, row, element);
}

std::uint64_t stored_dataset::stored_bytes() const { return H5Dget_storage_size(dataset_.id()); }

void stored_dataset::read_all(std::byte* to) const {
  if (H5Dread(dataset_.id(), memory_.id(), H5S_ALL, H5S_ALL, H5P_DEFAULT, to) < 0) {
    place_.fail(std::string(damaged) + reason());
  }
}

void stored_dataset::read_box(const std::vector<std::uint64_t>& from,
                              const std::vector<std::uint64_t>& size, std::byte* to) const {
  const std::vector<hsize_t> start(from.begin(), from.end());
  const std::vector<hsize_t> box(size.begin(), size.end());
  const handle space(H5Dget_space(dataset_.id()));
  if (!space.ok()) place_.fail(std::string(damaged) + reason());
  const handle memory_space(H5Screate_simple(static_cast<int>(box.size()), box.data(), nullptr));
  const bool selected = box.empty() || H5Sselect_hyperslab(space.id(), H5S_SELECT_SET, start.data(),
                                                           nullptr, box.data(), nullptr) >= 0;
  if (!selected || H5Dread(dataset_.id(), memory_.id(), box.empty() ? H5S_ALL : memory_space.id(),
                           box.empty() ? H5S_ALL : space.id(), H5P_DEFAULT, to) < 0) {
    place_.fail(std::string(damaged) + reason());
  }
}

}  // namespace kvcts::hdf5
