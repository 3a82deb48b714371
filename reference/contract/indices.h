// Checks of contents that several kernels share. Each throws input_error that names kernel,
// argument and element.
#pragma once

#include <string>
#include <string_view>

#include "reference/layout/tensor.h"

namespace kvcts {

// Rules in words that several kernels have.
constexpr std::string_view slots_rule = "no slot past the pages; negative: none";
constexpr std::string_view f32_alignment_rule =
    "offset and page stride are multiples of 4 bytes: f32 scales lie inside";
constexpr std::string_view position_rule = "each is a row of the table";
constexpr std::string_view group_position_rule =
    "0 or more where the slot is; that of a group's first token is a row of the table";

// Throws input_error "<kernel>: <argument>: <message>".
[[noreturn]] void reject(const call& c, std::string_view argument, const std::string& message);

// Element i of a 1-D argument, or [i, j] of a 2-D one.
std::int64_t integer_at(const tensor_view& v, std::int64_t i);
std::int64_t integer_at(const tensor_view& v, std::int64_t i, std::int64_t j);

// No slot of the first `tokens` of `mapping` (i64, 1-D) is past the pages of `cache`.
void check_slots(const call& c, std::string_view mapping, std::string_view cache,
                 std::int64_t block_size, std::int64_t tokens = INT64_MAX);

// The position of token t is a row of `table` (dimension 0).
void check_position(const call& c, std::string_view positions, std::int64_t token,
                    std::string_view table);
// The same where slots decide and a table row serves a group of compress_ratio tokens: for every
// token of `mapping` that has a slot and ends its group, at the group's first position.
void check_group_positions(const call& c, std::string_view positions, std::string_view mapping,
                           std::string_view table);

// Pages of a view with f32 scales inside (and its entries, where each has scales) begin at
// multiples of 4 bytes, so that a kernel can store a scale whole. Absent: nothing to check.
void check_f32_alignment(const call& c, std::string_view cache, bool entries);

// Token t's request is a row of `table`, a call's argument.
void check_request(const call& c, std::string_view requests, std::int64_t token,
                   std::int64_t request, std::string_view table);

// Entry `local` (>= 0) of a request has a column of `table`, and the id that comes of it,
// page * span + local % block_size, fits an i32. `argument` and `token` are where `local` stands.
void check_entry(const call& c, std::string_view argument, std::int64_t token, std::int64_t local,
                 std::string_view table, std::int64_t request, std::int64_t block_size,
                 std::int64_t span);

// An id that an i32 output must hold. `what` names the place: "token 3".
void check_id(const call& c, std::string_view argument, const std::string& what, std::int64_t id);

// `starts` (i32, [R + 1]) never falls, and its last end, from `base` on, is at most `tokens`.
void check_query_starts(const call& c, std::string_view starts, std::int64_t base,
                        std::int64_t tokens);

}  // namespace kvcts
