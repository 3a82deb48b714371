#include "conformance/candidate/library.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "conformance/cases/cases.h"
#include "reference/contract/contract.h"
#include "vectors/sha256.h"
#include "vectors/suite.h"

namespace kvcts {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t page = worker::page_bytes;
constexpr std::size_t storage_alignment = 16;

std::size_t rounded(std::size_t bytes, std::size_t to) { return (bytes + to - 1) / to * to; }

bool contains(const std::vector<std::string>& list, std::string_view one) {
  return std::find(list.begin(), list.end(), one) != list.end();
}

std::vector<std::string> read_texts(worker::message_reader& from) {
  std::vector<std::string> list;
  for (std::uint64_t left = from.number(); left > 0; --left) list.push_back(from.text());
  return list;
}

std::string digest_of_file(const std::string& path) {
  sha256_stream digest;
  std::ifstream in(path, std::ios::binary);
  std::array<char, 65536> piece;
  while (in.read(piece.data(), piece.size()) || in.gcount() > 0) {
    digest.add(piece.data(), static_cast<std::size_t>(in.gcount()));
  }
  return digest.finish();
}

void put_attribute(worker::message_writer& to, const std::string& name,
                   const attribute_value& value) {
  to.text(name);
  if (const auto* n = std::get_if<std::int64_t>(&value)) {
    to.number(KVCTS_INTEGER).number(static_cast<std::uint64_t>(*n));
  } else if (const auto* r = std::get_if<double>(&value)) {
    to.number(KVCTS_REAL).real(*r);
  } else {
    to.number(KVCTS_TEXT).text(std::get<std::string>(value));
  }
}

void put_numbers(worker::message_writer& to, const std::vector<std::int64_t>& list) {
  to.number(list.size());
  for (const std::int64_t one : list) to.number(static_cast<std::uint64_t>(one));
}

struct dtype_number {
  dtype type;
  kvcts_dtype number;
  std::string_view name;
};
constexpr dtype_number dtype_numbers[] = {
    {dtype::bf16, KVCTS_BF16, "KVCTS_BF16"},
    {dtype::f32, KVCTS_F32, "KVCTS_F32"},
    {dtype::f8e4m3fn, KVCTS_F8E4M3FN, "KVCTS_F8E4M3FN"},
    {dtype::f8e4m3fnuz, KVCTS_F8E4M3FNUZ, "KVCTS_F8E4M3FNUZ"},
    {dtype::ue8m0, KVCTS_UE8M0, "KVCTS_UE8M0"},
    {dtype::e2m1x2, KVCTS_E2M1X2, "KVCTS_E2M1X2"},
    {dtype::u8, KVCTS_U8, "KVCTS_U8"},
    {dtype::i32, KVCTS_I32, "KVCTS_I32"},
    {dtype::i64, KVCTS_I64, "KVCTS_I64"},
    {dtype::boolean, KVCTS_BOOL, "KVCTS_BOOL"},
};

const dtype_number& number_of(dtype type) {
  return *std::find_if(std::begin(dtype_numbers), std::end(dtype_numbers),
                       [&](const dtype_number& row) { return row.type == type; });
}

std::string_view verb(worker::access how) {
  switch (how) {
    case worker::access::read:
      return "read";
    case worker::access::write:
      return "write";
    default:
      return "access";
  }
}

}  // namespace

kvcts_dtype interface_dtype(dtype type) { return number_of(type).number; }
std::string_view interface_name(dtype type) { return number_of(type).name; }

kvcts_role interface_role(role r) {
  switch (r) {
    case role::input:
      return KVCTS_INPUT;
    case role::updated:
      return KVCTS_UPDATED;
    case role::output:
      return KVCTS_OUTPUT;
  }
  return KVCTS_INPUT;
}

shared_arena::shared_arena() : file_(memfd_create("kvcts-arena", MFD_CLOEXEC)) {
  if (file_ < 0) throw std::runtime_error("no shared memory is to be had");
}

shared_arena::~shared_arena() {
  if (memory_ != nullptr) munmap(memory_, bytes_);
  close(file_);
}

std::byte* shared_arena::at_least(std::size_t bytes) {
  if (bytes <= bytes_) return memory_;
  const std::size_t wanted = rounded(std::max(bytes, bytes_ * 2), page);
  if (memory_ != nullptr) munmap(memory_, bytes_);
  memory_ = nullptr;
  bytes_ = 0;
  void* made = MAP_FAILED;
  if (ftruncate(file_, static_cast<off_t>(wanted)) == 0) {
    made = mmap(nullptr, wanted, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file_, 0);
  }
  if (made == MAP_FAILED) {
    throw std::runtime_error(fmt::format("{} bytes of shared memory are not to be had", wanted));
  }
  bytes_ = wanted;
  memory_ = static_cast<std::byte*>(made);
  return memory_;
}

// One argument of a call.
struct library_candidate::placed {
  std::string name;
  role direction = role::input;
  const tensor_view* view = nullptr;
  const sparse_memory* holes = nullptr;
  std::byte* mapping = nullptr;  // in this process; null where it has holes
  std::size_t file_offset = 0, mapped_bytes = 0;
  std::size_t data_offset = 0;  // of the storage's first byte
};

library_candidate::library_candidate(const std::string& path, double seconds, std::string visible)
    : seconds_(seconds), visible_(std::move(visible)) {
  std::error_code error;
  if (!fs::is_regular_file(path, error)) {
    throw input_error(path + ": no such library; give the path of a shared library");
  }
  path_ = fs::absolute(path).lexically_normal().string();
  digest_ = digest_of_file(path_);
  start();
  for (const std::string& kernel : kernels_) {
    if (find_contract(kernel) == nullptr) {
      throw input_error(
          fmt::format("{}: claims the unknown kernel '{}': see kvcts list", path_, kernel));
    }
  }
  for (const std::string& p : profiles_) {
    if (p != name_of(profile::nvidia) && p != name_of(profile::ieee)) {
      throw input_error(fmt::format(
          "{}: claims the unknown profile '{}': the profiles are nvidia, ieee", path_, p));
    }
  }
  const std::vector<flag_text>& flags = flag_table();
  for (const std::string& flag : flags_not_claimed_) {
    if (std::none_of(flags.begin(), flags.end(),
                     [&](const flag_text& known) { return known.flag == flag; })) {
      throw input_error(
          fmt::format("{}: names the unknown flag '{}' in flags_not_claimed: see kvcts list KERNEL",
                      path_, flag));
    }
  }
}

void library_candidate::start() {
  worker_ = std::make_unique<worker_process>(path_, arena_.file(), visible_);
  std::string reply;
  // A GPU's first use takes its time, whatever a case may take.
  const double seconds = std::max(seconds_, 60.0);
  if (!worker_->receive(seconds, reply)) {
    throw input_error(path_ + ": loading it or kvcts_candidate_describe() fails: " +
                      worker_->end().text(seconds));
  }
  worker::message_reader from(std::move(reply));
  if (from.number() == 0) throw input_error(path_ + ": " + from.text());
  name_ = from.text();
  version_ = from.text();
  vendor_ = from.text();
  device_ = static_cast<kvcts_device_type>(from.number());
  kernels_ = read_texts(from);
  profiles_ = read_texts(from);
  flags_not_claimed_ = read_texts(from);
}

std::map<std::string, std::string> library_candidate::about() const {
  std::map<std::string, std::string> text = {
      {"candidate library", path_},
      {"candidate library sha256", digest_},
      {"candidate ABI", std::to_string(KVCTS_ABI_VERSION)},
      {"candidate memory", device_ == KVCTS_CUDA ? "CUDA" : "CPU"},
  };
  if (!vendor_.empty()) text["candidate vendor"] = vendor_;
  if (!profiles_.empty())
    text["candidate profiles"] = fmt::format("{}", fmt::join(profiles_, ", "));
  if (!flags_not_claimed_.empty()) {
    text["candidate flags not claimed"] = fmt::format("{}", fmt::join(flags_not_claimed_, ", "));
  }
  return text;
}

bool library_candidate::supports(std::string_view kernel) const {
  return contains(kernels_, kernel);
}

std::optional<std::string> library_candidate::not_claimed(const test_case& header,
                                                          profile p) const {
  if (!profiles_.empty() && !contains(profiles_, name_of(p))) {
    return fmt::format("{} does not claim the profile {}", name_, name_of(p));
  }
  for (const std::string& flag : header.flags) {
    if (contains(flags_not_claimed_, flag)) {
      return fmt::format("{} does not claim cases of the flag {}", name_, flag);
    }
  }
  return std::nullopt;
}

bool library_candidate::renew() {
  worker_.reset();
  return true;
}

std::vector<library_candidate::placed> library_candidate::place(const call& c, std::byte fill,
                                                                bool end_flush) {
  // Device memory has no pages without access: a page of canary stands on each side.
  const std::size_t margin = device_ == KVCTS_CPU ? 0 : page;
  std::vector<placed> buffers;
  std::size_t end = 0;
  for (const argument_spec& spec : contract_of(c.kernel).arguments) {
    const tensor_view* view = c.find(spec.name);
    if (view == nullptr) continue;
    placed one;
    one.name = spec.name;
    one.direction = spec.direction;
    one.view = view;
    one.holes = dynamic_cast<const sparse_memory*>(view->holes);
    const std::size_t pages = std::max(rounded(view->storage_bytes, page), page);
    if (one.holes != nullptr) {
      one.file_offset = sparse_memory::page;
      one.mapped_bytes = pages;
    } else {
      one.file_offset = end;
      one.mapped_bytes = pages + 2 * margin;
      one.data_offset =
          margin + (end_flush ? pages - rounded(view->storage_bytes, storage_alignment) : 0);
      end += one.mapped_bytes;
    }
    buffers.push_back(std::move(one));
  }
  std::byte* memory = arena_.at_least(end);
  for (placed& one : buffers) {
    if (one.holes != nullptr) continue;
    one.mapping = memory + one.file_offset;
    std::byte* data = one.mapping + one.data_offset;
    std::fill(one.mapping, data, fill);
    std::copy_n(one.view->storage, one.view->storage_bytes, data);
    std::fill(data + one.view->storage_bytes, one.mapping + one.mapped_bytes, fill);
  }
  return buffers;
}

// "write 16 bytes behind the end of argument k_cache". Between two arguments it is the nearer one.
std::string library_candidate::place_of_fault(const worker::status& seen,
                                              const std::vector<placed>& buffers) {
  if (seen.how == worker::access::wild) {
    return "an address that no memory can have, or one not aligned as its instruction wants it";
  }
  const std::uint64_t at = seen.fault_address;
  const std::string_view did = verb(seen.how);
  std::uint64_t nearest = worker::guard_bytes;
  std::string where;
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    const placed& b = buffers[i];
    const std::uint64_t start = seen.mapped_at[i] + b.data_offset;
    const std::uint64_t behind = start + b.view->storage_bytes;
    if (at >= start && at < behind) {
      return fmt::format("{} of byte {} of argument {}{}", did, at - start, b.name,
                         b.direction == role::input ? ", an input: must not change" : "");
    }
    const bool before = at < start;
    const std::uint64_t distance = before ? start - at : at - behind;
    if (distance >= nearest) continue;
    nearest = distance;
    where = fmt::format("{} {} bytes {} argument {}", did, distance,
                        before ? "before" : "behind the end of", b.name);
  }
  if (!where.empty()) return where;
  constexpr std::uint64_t frame = std::uint64_t{1} << 20;
  if (seen.stack_pointer != 0 && at < seen.stack_pointer + worker::page_bytes &&
      at + frame > seen.stack_pointer) {
    return "the stack is used up (endless recursion, or large local arrays)";
  }
  return fmt::format("{} of address {:#x}, in no argument", did, at);
}

void library_candidate::report_end(const std::vector<placed>& buffers) {
  const worker_end end = worker_->end();
  worker_.reset();
  const worker::status& seen = end.last_seen;
  const bool known = seen.faulted != 0 && !end.timed_out;
  const std::string where = known ? place_of_fault(seen, buffers) + ": " : "";
  throw call_failure(end.timed_out ? outcome::timed_out : outcome::crashed,
                     where + end.text(seconds_));
}

void library_candidate::run(const call& c, profile p) { run_guarded(c, p, canary); }

std::vector<guard_region> library_candidate::run_guarded(const call& c, profile p, std::byte fill) {
  if (worker_ == nullptr) start();
  const std::vector<placed> buffers = place(c, fill, fill == canary);
  worker::message_writer request;
  std::vector<int> descriptors;
  request.text(c.kernel).text(name_of(p)).number(buffers.size());
  for (const placed& b : buffers) {
    const tensor_view& view = *b.view;
    request.text(b.name).number(static_cast<std::uint64_t>(interface_role(b.direction)));
    request.number(static_cast<std::uint64_t>(interface_dtype(view.type)));
    put_numbers(request, view.at.shape);
    put_numbers(request, view.at.strides);
    request.number(b.holes != nullptr ? 1 : 0);
    request.number(b.file_offset).number(b.mapped_bytes);
    request.number(b.data_offset + static_cast<std::uint64_t>(view.at.offset) * size_of(view.type));
    if (b.holes != nullptr) descriptors.push_back(b.holes->file());
  }
  request.number(c.attributes.size());
  for (const auto& [name, value] : c.attributes) put_attribute(request, name, value);

  std::string bytes;
  if (!worker_->ask(request, descriptors, seconds_, bytes)) report_end(buffers);
  worker::message_reader reply(std::move(bytes));
  if (reply.number() == 0) {
    // A device error stays for the life of the process.
    worker_.reset();
    throw call_failure(outcome::crashed, reply.text());
  }
  const auto answer = static_cast<kvcts_answer>(reply.number());
  const std::string said = reply.text();
  const std::int64_t left_open = reply.integer();
  switch (answer) {
    case KVCTS_OK:
      break;
    case KVCTS_UNSUPPORTED:
      throw call_failure(outcome::unsupported,
                         said.empty() ? name_ + " answers: unsupported" : said);
    case KVCTS_ERROR:
      throw call_failure(outcome::failed, "the candidate answers an error: " +
                                              (said.empty() ? "without a message" : said));
    default:
      throw call_failure(outcome::failed, fmt::format("the candidate answers {}, must be KVCTS_OK, "
                                                      "KVCTS_UNSUPPORTED or KVCTS_ERROR",
                                                      answer));
  }

  std::vector<guard_region> guards;
  for (const placed& b : buffers) {
    if (b.holes != nullptr) continue;  // shared as it is, its guards too
    const std::byte* data = b.mapping + b.data_offset;
    const std::size_t size = b.view->storage_bytes;
    if (b.direction != role::input || device_ != KVCTS_CPU) {
      std::copy_n(data, size, b.view->storage);
    }
    guards.push_back({b.name, b.mapping, b.data_offset, true});
    guards.push_back({b.name, data + size, b.mapped_bytes - b.data_offset - size, false});
  }
  // What opens files once, at its first call, is no leak: both calls of a case must do it.
  const bool leaked_before = std::exchange(leaked_, left_open > 0);
  if (fill != canary && leaked_before && leaked_) {
    throw call_failure(outcome::failed, fmt::format("file descriptors leak: {} more are open after "
                                                    "each call of this case",
                                                    left_open));
  }
  return guards;
}

}  // namespace kvcts
