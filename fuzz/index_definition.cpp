#include "fuzz/index_definition.h"

#include <algorithm>
#include <map>
#include <string>

namespace kvcts {
namespace {

using integer = std::int64_t;
using list = std::vector<integer>;
using matrix = std::vector<list>;

// An argument as numbers; empty where it is absent.
matrix rows_of(const test_case& c, const char* name) {
  const buffer* given = c.input(name);
  if (given == nullptr) return {};
  const tensor_view v = given->view();
  const integer columns = v.rank() == 1 ? 1 : v.dim(1);
  matrix rows;
  for (integer i = 0; i < v.dim(0); ++i) {
    list row;
    for (integer j = 0; j < columns; ++j) {
      const std::byte* at = v.rank() == 1 ? v.element(i) : v.element(i, j);
      row.push_back(v.type == dtype::boolean ? load<std::uint8_t>(at) : load<std::int32_t>(at));
    }
    rows.push_back(std::move(row));
  }
  return rows;
}
list list_of(const test_case& c, const char* name) {
  list values;
  for (const list& row : rows_of(c, name)) values.push_back(row[0]);
  return values;
}
integer width_of(const test_case& c, const char* name) {
  const buffer* given = c.input(name);
  return given == nullptr ? 0 : given->at.shape[1];
}
integer attribute(const test_case& c, const char* name, integer otherwise = 0) {
  const auto found = c.attributes.find(name);
  return found == c.attributes.end() ? otherwise : std::get<integer>(found->second);
}

using outputs = index_outputs;

integer how_many_not_negative(const list& row) {
  return std::count_if(row.begin(), row.end(), [](integer v) { return v >= 0; });
}

// Whole groups of `ratio` among `tokens`, at most `most`.
integer whole_groups(integer tokens, integer ratio, integer most) {
  integer groups = 0;
  if (ratio > 0) {
    while (groups < most && (groups + 1) * ratio <= tokens) ++groups;
  }
  return groups;
}

// The last `window` positions up to `position`, of those not below `lowest` and 0.
list positions_of_window(integer position, integer window, integer lowest) {
  list live;
  for (integer back = window - 1; back >= 0; --back) {
    const integer p = position - back;
    if (p >= 0 && p >= lowest) live.push_back(p);
  }
  return live;
}

// Position of token `t` of a request whose tokens end before `end`: counted from its last one.
integer position_of(integer seq_len, integer end, integer t) { return seq_len - (end - t); }

// A KV whose pages take `span` ids for `size` entries.
struct pages {
  matrix table;
  integer size, span;
  integer id_of_slot(integer slot) const {
    if (slot < 0) return -1;
    const integer in_page = slot % size;
    return slot + (slot - in_page) / size * (span - size);
  }
  // No page, no id: the way over a slot of a negative page must end there too.
  integer id_of_entry(integer request, integer entry) const {
    if (entry < 0) return -1;
    const integer page =
        table[static_cast<std::size_t>(request)][static_cast<std::size_t>(entry / size)];
    return page < 0 ? -1 : page * span + entry % size;
  }
};

}  // namespace

outputs define_global_topk(const test_case& c) {
  const integer size = attribute(c, "block_size");
  const matrix topk = rows_of(c, "topk_indices");
  const matrix table = rows_of(c, "block_table");
  const list requests = list_of(c, "token_to_req_indices");
  const list valid = list_of(c, "is_valid_token");
  // All entries of all requests, with the slot of each.
  std::map<std::pair<integer, integer>, integer> slots;
  for (std::size_t r = 0; r < table.size(); ++r) {
    integer local = 0;
    for (const integer page : table[r]) {
      for (integer slot = page * size; slot < (page + 1) * size; ++slot) {
        slots[{static_cast<integer>(r), local++}] = slot;
      }
    }
  }
  outputs made;
  for (std::size_t t = 0; t < topk.size(); ++t) {
    for (const integer local : topk[t]) {
      made.ids.push_back(local < 0 ? -1 : slots.at({requests[t], local}));
    }
    made.lens.push_back(valid[t] * how_many_not_negative(topk[t]));
  }
  return made;
}

outputs define_combined(const test_case& c) {
  const integer topk = attribute(c, "topk");
  const integer window = attribute(c, "window_size");
  const integer compressed = attribute(c, "N");
  const matrix indices = rows_of(c, "topk_indices");
  const list starts = list_of(c, "query_start_loc");
  const list seq_lens = list_of(c, "seq_lens");
  const list gather_lens = list_of(c, "gather_lens");
  integer width = topk + window;
  while (width % 128 != 0) ++width;
  const auto tokens = c.input("topk_indices")->at.shape[0];
  outputs made;
  for (integer t = 0; t < tokens; ++t) {
    list row;
    for (std::size_t r = 0; r < seq_lens.size(); ++r) {
      if (t < starts[r] - starts[0] || t >= starts[r + 1] - starts[0]) continue;
      const integer position = position_of(seq_lens[r], starts[r + 1] - starts[0], t);
      const integer first = attribute(c, "M") * static_cast<integer>(r);
      for (integer i = 0; i < whole_groups(position + 1, attribute(c, "compress_ratio"), topk);
           ++i) {
        const integer local = indices[static_cast<std::size_t>(t)][static_cast<std::size_t>(i)];
        row.push_back(local >= 0 && local < compressed ? first + local : -1);
      }
      // Window entries lie in the order of positions, the request's last one last.
      const integer not_gathered = seq_lens[r] - gather_lens[r];
      for (const integer p : positions_of_window(position, window, not_gathered)) {
        row.push_back(first + compressed + gather_lens[r] - (seq_lens[r] - p));
      }
    }
    made.lens.push_back(static_cast<integer>(row.size()));
    row.resize(static_cast<std::size_t>(width), -1);
    made.ids.insert(made.ids.end(), row.begin(), row.end());
  }
  return made;
}

outputs define_mixed(const test_case& c) {
  const matrix swa = rows_of(c, "decode_swa_indices");
  const matrix compressed = rows_of(c, "decode_compressed_indices");
  const matrix topk_indices = rows_of(c, "prefill_topk_indices");
  const list given_lens = list_of(c, "decode_compressed_topk_lens");
  const list valid = list_of(c, "decode_is_valid_token");
  const list starts = list_of(c, "query_start_loc");
  const list seq_lens = list_of(c, "seq_lens");
  const list replay = list_of(c, "replay_start");
  const list requests = list_of(c, "token_to_req_indices");
  const bool local = attribute(c, "decode_compressed_indices_are_local") != 0;
  const integer swa_size = attribute(c, "swa_block_size");
  const integer compressed_size = attribute(c, "compressed_block_size");
  const pages window_pages = {rows_of(c, "swa_block_table"), swa_size,
                              attribute(c, "swa_block_span", swa_size)};
  const bool one_table = c.input("compressed_block_table") == nullptr;
  const pages compressed_pages = {
      rows_of(c, one_table ? "swa_block_table" : "compressed_block_table"), compressed_size,
      attribute(c, "compressed_block_span", compressed_size)};
  const auto window_columns = static_cast<std::size_t>(width_of(c, "decode_swa_indices"));
  const integer decode_columns = width_of(c, "decode_compressed_indices");
  integer padded = std::max(attribute(c, "topk"), decode_columns);
  while (padded % 4 != 0) ++padded;

  outputs made;
  for (std::size_t t = 0; t < swa.size() + topk_indices.size(); ++t) {
    const integer request = requests[t];
    list window, ids;
    integer found = 0;
    if (t < swa.size()) {
      for (const integer slot : swa[t]) window.push_back(window_pages.id_of_slot(slot));
      const list none;
      const list& row = compressed.empty() ? none : compressed[t];
      for (const integer index : row) {
        ids.push_back(local ? compressed_pages.id_of_entry(request, index)
                            : compressed_pages.id_of_slot(index));
      }
      found = local                ? (valid[t] != 0 ? how_many_not_negative(row) : 0)
              : given_lens.empty() ? decode_columns
                                   : given_lens[t];
    } else {
      const auto r = static_cast<std::size_t>(request);
      const integer position = position_of(seq_lens[r], starts[r + 1], static_cast<integer>(t));
      for (const integer p :
           positions_of_window(position, attribute(c, "window_size"), replay[r])) {
        window.push_back(window_pages.id_of_entry(request, p));
      }
      found = whole_groups(position + 1, attribute(c, "compress_ratio"), attribute(c, "topk"));
      const list& row = topk_indices[t - swa.size()];
      for (integer i = 0; i < found && i < static_cast<integer>(row.size()); ++i) {
        ids.push_back(compressed_pages.id_of_entry(request, row[static_cast<std::size_t>(i)]));
      }
    }
    window.resize(window_columns, -1);
    ids.resize(static_cast<std::size_t>(padded), -1);
    made.ids.insert(made.ids.end(), window.begin(), window.end());
    made.ids.insert(made.ids.end(), ids.begin(), ids.end());
    made.lens.push_back(static_cast<integer>(window_columns) + found);
  }
  return made;
}

list numbers_of(const buffer& b) {
  list values;
  for (std::size_t i = 0; i < b.bytes.size(); i += 4) {
    values.push_back(load<std::int32_t>(b.bytes.data() + i));
  }
  return values;
}

}  // namespace kvcts
