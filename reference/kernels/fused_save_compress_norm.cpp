#include "reference/kernels/fused_save_compress_norm.h"

#include <cstring>
#include <vector>

#include "reference/contract/registry.h"
#include "reference/kernels/norm.h"
#include "reference/kernels/page_access.h"
#include "reference/numerics/arithmetic.h"

namespace kvcts {
namespace {

constexpr std::int64_t latent_dim = 512;

// Ring rows of raw rows, [kv 512 | score 512] f32.
struct ring {
  const tensor_view& state;  // [pages, capacity, 1024]
  const Rules& rules;

  std::int64_t capacity() const { return state.dim(1); }
  // Row `number` % capacity of the slot's page. Null outside the pages, where only a fault goes.
  std::byte* row(std::int64_t slot, std::int64_t number) const {
    const std::int64_t page = rules.page_of(slot, capacity(), state.dim(0));
    if (page < 0 || page >= state.dim(0)) return nullptr;
    return state.element(page, position_of(number, capacity()));
  }
};

std::vector<float> floats_at(const std::byte* from, std::int64_t n) {
  std::vector<float> x(static_cast<std::size_t>(n));
  std::memcpy(x.data(), from, x.size() * sizeof(float));
  return x;
}

// Softmax over the two scores of each dim. `first` is the row of the earlier position.
std::vector<float> pool(const Rules& rules, const std::vector<float>& first,
                        const std::vector<float>& second) {
  std::vector<float> pooled;
  for (std::size_t d = 0; d < latent_dim; ++d) {
    const float s0 = first[latent_dim + d];
    const float s1 = second[latent_dim + d];
    const float m = rules.softmax_shift(s0, s1);
    const float e0 = rules.exp(rules.shifted_score(s0, m));
    const float e1 = rules.exp(rules.shifted_score(s1, m));
    const float z = add(e0, e1);
    const float p0 = rules.div(e0, z);
    const float p1 = rules.div(e1, z);
    pooled.push_back(rules.pool_pair(p0, first[d], p1, second[d]));
  }
  return pooled;
}

}  // namespace

void fused_save_compress_norm(const call& c, const Rules& rules) {
  const tensor_view& kv_score = c.tensor("kv_score");    // [T, 512 or 1024] f32
  const tensor_view& positions = c.tensor("positions");  // [P] i64
  const tensor_view& slots = c.tensor("slot_mapping");   // [S] i64
  const tensor_view& latent = c.tensor("latent_out");    // [L, 512] bf16
  const std::int64_t ratio = c.integer("compress_ratio");
  const rms_norm norm = {
      .weight = read_vector(c.tensor("rms_norm_weight")),
      .eps = c.real("rms_norm_eps"),
      .tree =
          contract_tree(fused_save_compress_norm_contract(), "RMSNorm of the latent", {}, rules),
  };
  const auto slot_of = [&](std::int64_t t) { return load<std::int64_t>(slots.element(t)); };
  const auto raw_row = [&](std::int64_t t) {
    return floats_at(kv_score.element(t), kv_score.dim(1));
  };

  // Every latent before any ring row is stored: the ring is read as the last call left it.
  for (std::int64_t t = 0; t < slots.dim(0); ++t) {
    const auto position = load<std::int64_t>(positions.element(t));
    if (!rules.slot_is_live(slot_of(t)) || !rules.group_ends_at(position, ratio)) continue;
    std::vector<float> row = raw_row(t);
    if (ratio == 2) {
      const auto request = load<std::int32_t>(c.tensor("token_to_req_indices").element(t));
      const auto start = load<std::int32_t>(c.tensor("query_start_loc").element(request));
      if (t > start) {
        row = pool(rules, raw_row(t - 1), row);
      } else {
        // The group began in an earlier chunk.
        const ring from = {c.tensor("state_cache"), rules};
        const std::byte* earlier = from.row(slot_of(t), position - 1);
        if (earlier == nullptr) continue;
        row = pool(rules, floats_at(earlier, 2 * latent_dim), row);
      }
    }
    const std::vector<float> y = norm.of(row, rules);
    for (std::int64_t d = 0; d < latent_dim; ++d) {
      store(latent.element(t, d), rules.round_bf16(y[static_cast<std::size_t>(d)]));
    }
  }
  if (ratio == 1) return;

  // A chunk whose first slot is negative keeps nothing.
  const tensor_view& starts = c.tensor("query_start_loc");  // [requests + 1] i32
  const ring to = {c.tensor("state_cache"), rules};
  for (std::int64_t r = 0; r + 1 < starts.dim(0); ++r) {
    const std::int64_t start = load<std::int32_t>(starts.element(r));
    const std::int64_t end = load<std::int32_t>(starts.element(r + 1));
    if (start >= end || start >= slots.dim(0) || !rules.slot_is_live(slot_of(start))) continue;
    for (std::int64_t t = rules.first_kept_token(start, end, to.capacity());
         t < end && t < slots.dim(0); ++t) {
      if (!rules.slot_is_live(slot_of(t))) continue;
      std::byte* row = to.row(slot_of(t), slot_of(t));
      if (row != nullptr) std::memcpy(row, kv_score.element(t), 2 * latent_dim * sizeof(float));
    }
  }
}

}  // namespace kvcts
