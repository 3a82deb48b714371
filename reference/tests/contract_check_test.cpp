// Each way in which a call can fail to fit its declaration, and the message it must get.
#include <gtest/gtest.h>

#include "reference/contract/pages.h"
#include "reference/tests/call_builder.h"

namespace kvcts {
namespace {

// T = 3, H = 4, P = 8.
call_builder q_quant() {
  call_builder b("mxfp4_q_quant");
  b.add("index_q", dtype::bf16, {3, 4, 128});
  b.add("index_weights", dtype::f32, {3, 4});
  b.get().attributes["weight_scale"] = 0.5;
  b.get().attributes["padded_num_heads"] = std::int64_t{8};
  return b;
}

// N = 5, S = 3, two pages of 4 tokens.
call_builder insert(std::int64_t record = 584) {
  call_builder b("quantize_and_insert_k_cache");
  b.add("k", dtype::bf16, {5, 512});
  b.add("k_cache", dtype::u8, {2, 4, record});
  b.i64("slot_mapping", {0, -1, 7});
  b.get().attributes["block_size"] = std::int64_t{4};
  b.get().attributes["use_fnuz"] = std::int64_t{0};
  b.get().attributes["bytes_per_token"] = record;
  return b;
}

void set_integer(call_builder& b, const char* name, std::int64_t value) {
  b.get().attributes[name] = value;
}

TEST(check, passes_and_gives_names) {
  const call_builder q = q_quant();
  const bindings names = check(q.contract(), q_quant().get(), false);
  EXPECT_EQ(names.at("T"), 3);
  EXPECT_EQ(names.at("H"), 4);
  EXPECT_EQ(names.at("padded_num_heads"), 8);
  EXPECT_EQ(insert().refusal(), "");
  EXPECT_EQ(insert(528).refusal(), "");
}

TEST(check, gives_output_shapes) {
  call_builder b = q_quant();
  const auto outputs = outputs_of(b.contract(), b.get(), check(b.contract(), b.get(), false));
  ASSERT_EQ(outputs.size(), 3U);
  EXPECT_EQ(outputs[0].spec->name, "q_packed");
  EXPECT_EQ(outputs[0].shape, (std::vector<std::int64_t>{3, 8, 64}));
  EXPECT_EQ(outputs[1].shape, (std::vector<std::int64_t>{3, 8}));
  EXPECT_EQ(outputs[2].shape, (std::vector<std::int64_t>{3, 8}));
  call_builder i = insert();
  EXPECT_TRUE(outputs_of(i.contract(), i.get(), check(i.contract(), i.get(), false)).empty());
}

TEST(check, unknown_kernel) {
  try {
    contract_of("mxfp4");
    FAIL();
  } catch (const input_error& e) {
    EXPECT_EQ(std::string(e.what()).find("unknown kernel 'mxfp4': the kernels are mxfp4_q_quant, "),
              0U);
  }
}

TEST(check, names_of_arguments_and_attributes) {
  call_builder b = q_quant();
  b.add("index_k", dtype::bf16, {3});
  EXPECT_EQ(b.refusal(),
            "mxfp4_q_quant: index_k: is no argument of this kernel; it has index_q, index_weights, "
            "q_packed, q_scale, weights");
  b = q_quant();
  b.get().tensors.erase("index_weights");
  EXPECT_EQ(b.refusal(),
            "mxfp4_q_quant: index_weights: is missing: the argument is [T, H] bf16 or f32");
  b = q_quant();
  set_integer(b, "heads", 3);
  EXPECT_EQ(b.refusal(),
            "mxfp4_q_quant: heads: is no attribute of this kernel; it has weight_scale, "
            "padded_num_heads");
  b = q_quant();
  b.get().attributes.erase("padded_num_heads");
  EXPECT_EQ(b.refusal(),
            "mxfp4_q_quant: padded_num_heads: is missing: the attribute is an integer");
}

TEST(check, attribute_kinds) {
  call_builder b = q_quant();
  b.get().attributes["padded_num_heads"] = 8.5;
  EXPECT_EQ(b.refusal(), "mxfp4_q_quant: padded_num_heads: is 8.500000, must be an integer");
  b = q_quant();
  b.get().attributes["weight_scale"] = std::string("big");
  EXPECT_EQ(b.refusal(),
            "mxfp4_q_quant: weight_scale: is 'big', must be a real number (1.0, not 1)");
  b = insert();
  set_integer(b, "use_fnuz", 2);
  EXPECT_EQ(b.refusal(), "quantize_and_insert_k_cache: use_fnuz: is 2, must be 0 or 1");
}

TEST(check, dtypes) {
  call_builder b = q_quant();
  b.add("index_q", dtype::f32, {3, 4, 128});
  EXPECT_EQ(b.refusal(), "mxfp4_q_quant: index_q: dtype is f32, must be bf16");
  b = q_quant();
  b.add("index_weights", dtype::i32, {3, 4});
  EXPECT_EQ(b.refusal(), "mxfp4_q_quant: index_weights: dtype is i32, must be bf16 or f32");
  // Names of the same stored bytes are one.
  b = insert();
  b.get().tensors["k_cache"].type = dtype::ue8m0;
  EXPECT_EQ(b.refusal(), "");
  b.get().tensors["k_cache"].type = dtype::f8e4m3fn;
  EXPECT_EQ(b.refusal(), "quantize_and_insert_k_cache: k_cache: dtype is f8e4m3fn, must be u8");
}

TEST(check, shapes) {
  call_builder b = q_quant();
  b.add("index_q", dtype::bf16, {3, 4, 64});
  EXPECT_EQ(b.refusal(), "mxfp4_q_quant: index_q: dimension 2 (dim) is 64, must be 128");
  b = q_quant();
  b.add("index_q", dtype::bf16, {12, 128});
  EXPECT_EQ(b.refusal(),
            "mxfp4_q_quant: index_q: shape is [12, 128], must be [T, H, 128] (token, head, dim)");
  b = q_quant();
  b.add("index_weights", dtype::f32, {3, 5});
  EXPECT_EQ(b.refusal(), "mxfp4_q_quant: index_weights: dimension 1 (head) is 5, must be H = 4");
  b = q_quant();
  b.add("index_weights", dtype::f32, {2, 4});
  EXPECT_EQ(b.refusal(), "mxfp4_q_quant: index_weights: dimension 0 (token) is 2, must be T = 3");
  b = insert();
  b.add("k", dtype::bf16, {5, 576});
  EXPECT_EQ(b.refusal(), "quantize_and_insert_k_cache: k: dimension 1 (dim) is 576, must be 512");
  b = insert();
  b.add("k_cache", dtype::u8, {2, 8, 584});
  EXPECT_EQ(b.refusal(),
            "quantize_and_insert_k_cache: k_cache: dimension 1 (position) is 8, must be "
            "block_size = 4");
  b = insert();
  b.add("k_cache", dtype::u8, {2, 4, 528});
  EXPECT_EQ(b.refusal(),
            "quantize_and_insert_k_cache: k_cache: dimension 2 (byte) is 528, must be "
            "bytes_per_token = 584");
}

TEST(check, preconditions) {
  call_builder b = q_quant();
  set_integer(b, "padded_num_heads", 3);
  EXPECT_EQ(b.refusal(),
            "mxfp4_q_quant: padded_num_heads: is 3, must be at least the 4 heads of index_q");
  b = insert();
  set_integer(b, "block_size", 0);
  EXPECT_EQ(b.refusal(), "quantize_and_insert_k_cache: block_size: is 0, must be at least 1");
  set_integer(b, "block_size", -4);
  EXPECT_EQ(b.refusal(), "quantize_and_insert_k_cache: block_size: is -4, must be at least 1");
  b = insert();
  set_integer(b, "bytes_per_token", 288);
  EXPECT_EQ(b.refusal(),
            "quantize_and_insert_k_cache: bytes_per_token: is 288, must be 584 or 528");
  b = insert();
  b.i64("slot_mapping", {0, 1, 2, 3, 4, 5});
  EXPECT_EQ(b.refusal(),
            "quantize_and_insert_k_cache: slot_mapping: has 6 slots for the 5 rows of k, must have "
            "at most as many");
}

TEST(check, slots_past_the_cache) {
  call_builder b = insert();
  b.i64("slot_mapping", {0, -1, 8});
  EXPECT_EQ(b.refusal(),
            "quantize_and_insert_k_cache: slot_mapping: slot 8 of token 2 is past the cache, must "
            "be below 2 pages * 4 tokens of k_cache");
  b.i64("slot_mapping", {INT64_MAX});
  EXPECT_NE(b.refusal(), "");
  b.i64("slot_mapping", {-7, INT64_MIN, 7});
  EXPECT_EQ(b.refusal(), "");
}

TEST(check, row_strides) {
  call_builder b = q_quant();
  // Free token and head strides, an offset, and heads outside tokens.
  b.add("index_q", dtype::bf16, {{3, 4, 128}, {1000, 200, 1}, 7});
  EXPECT_EQ(b.refusal(), "");
  b.add("index_q", dtype::bf16, {{3, 4, 128}, {128, 384, 1}, 0});
  EXPECT_EQ(b.refusal(), "");
  b.add("index_q", dtype::bf16, {{3, 4, 128}, {1024, 256, 2}, 0});
  EXPECT_EQ(b.refusal(), "mxfp4_q_quant: index_q: last stride is 2, must be 1");
  b.add("index_q", dtype::bf16, {{3, 4, 128}, {511, 128, 1}, 0});
  EXPECT_EQ(b.refusal(),
            "mxfp4_q_quant: index_q: strides are [511, 128, 1]: rows overlap, stride 0 must be at "
            "least 512");
  b.add("index_q", dtype::bf16, {{3, 4, 128}, {512, 0, 1}, 0});
  EXPECT_NE(b.refusal(), "");
  // Strides of dimensions of size 1 do not count.
  b.add("index_q", dtype::bf16, {{3, 1, 128}, {128, 0, 1}, 0});
  b.add("index_weights", dtype::bf16, {{3, 1}, {1, 9}, 0});
  EXPECT_EQ(b.refusal(), "");
}

TEST(check, dense_strides) {
  call_builder b = insert();
  b.add("slot_mapping", dtype::i64, extent{{3}, {2}, 0});
  EXPECT_EQ(b.refusal(),
            "quantize_and_insert_k_cache: slot_mapping: strides are [2], must be dense: [1]");
  // A leading guard is no stride.
  b.add("slot_mapping", dtype::i64, extent{{3}, {1}, 2});
  EXPECT_EQ(b.refusal(), "");
}

TEST(check, page_views) {
  const std::int64_t page = 4 * 584;
  call_builder b = insert();
  b.add("k_cache", dtype::u8, {{2, 4, 584}, {page + 100, 584, 1}, 32});
  EXPECT_EQ(b.refusal(), "");
  b.add("k_cache", dtype::u8, {{2, 4, 584}, {page - 1, 584, 1}, 0});
  EXPECT_EQ(b.refusal(),
            "quantize_and_insert_k_cache: k_cache: page stride is 2335 bytes, must be at least "
            "block_size * (bytes_per_token) = 2336 bytes");
  b.add("k_cache", dtype::u8, {{2, 4, 584}, {page, 583, 1}, 0});
  EXPECT_EQ(b.refusal(),
            "quantize_and_insert_k_cache: k_cache: entry stride is 583 bytes, must be at least the "
            "record's 584");
  b.add("k_cache", dtype::u8, {{2, 4, 584}, {3 * page, 584, 2}, 0});
  EXPECT_EQ(b.refusal(), "quantize_and_insert_k_cache: k_cache: last stride is 2, must be 1");
  // One page needs no page stride.
  b.add("k_cache", dtype::u8, {{1, 4, 584}, {0, 584, 1}, 0});
  b.i64("slot_mapping", {3});
  EXPECT_EQ(b.refusal(), "");
}

TEST(check, flat_page_views) {
  const std::int64_t page = 4 * 584;
  call_builder b = insert();
  b.add("k_cache", dtype::u8, {{2, page}, {page + 64, 1}, 0});
  EXPECT_EQ(b.refusal(), "");
  b.add("k_cache", dtype::u8, {2, page + 64});  // padding inside the page
  EXPECT_EQ(b.refusal(), "");
  b.add("k_cache", dtype::u8, {{2, page - 1}, {page, 1}, 0});
  EXPECT_EQ(b.refusal(),
            "quantize_and_insert_k_cache: k_cache: dimension 1 (page byte) is 2335, must be at "
            "least block_size * (bytes_per_token) = 2336 bytes");
  b.add("k_cache", dtype::u8, {{2, page + 64}, {page, 1}, 0});
  EXPECT_EQ(b.refusal(),
            "quantize_and_insert_k_cache: k_cache: page stride is 2336 bytes, must be at least the "
            "page's 2400 bytes");
  b.add("k_cache", dtype::u8, {8 * 584});
  EXPECT_EQ(b.refusal(),
            "quantize_and_insert_k_cache: k_cache: shape is [4672], must be [blocks, block_size, "
            "bytes_per_token] (page, position, byte) or [blocks, block_size * bytes_per_token]");
}

TEST(check, storage_must_hold_the_view) {
  call_builder b = insert();
  b.get().tensors["k_cache"].storage_bytes = 2 * 4 * 584 - 1;
  EXPECT_EQ(b.refusal(),
            "quantize_and_insert_k_cache: k_cache: shape [2, 4, 584] with strides [2336, 584, 1] "
            "and offset 0 reaches byte 4672, the storage has 4671 bytes");
  b.get().tensors["k_cache"].storage_bytes = 2 * 4 * 584;
  EXPECT_EQ(b.refusal(), "");
  b.get().tensors["k_cache"].storage = nullptr;
  EXPECT_EQ(b.refusal(), "quantize_and_insert_k_cache: k_cache: has no storage");
  b = q_quant();
  b.get().tensors["index_weights"].at.offset = 8;  // of 12 + 4 guard elements, the view needs 12
  EXPECT_NE(b.refusal(), "");
}

TEST(check, hostile_numbers) {
  call_builder b = q_quant();
  b.get().tensors["index_q"].at.shape = {-1, 4, 128};
  EXPECT_EQ(b.refusal(),
            "mxfp4_q_quant: index_q: shape is [-1, 4, 128], sizes must not be negative");
  b = q_quant();
  b.get().tensors["index_q"].at.strides = {-512, 128, 1};
  EXPECT_NE(b.refusal(), "");
  b = q_quant();
  b.get().tensors["index_q"].at.offset = -1;
  EXPECT_NE(b.refusal(), "");
  b = q_quant();
  b.get().tensors["index_q"].at.strides = {512, 128};
  EXPECT_EQ(b.refusal(),
            "mxfp4_q_quant: index_q: has 2 strides for 3 dimensions, must have as many");
  b = q_quant();
  b.get().tensors["index_q"].at.strides = {INT64_MAX / 2 + 1, 128, 1};
  EXPECT_NE(b.refusal().find("reaches past 64 bits"), std::string::npos);
  b = q_quant();
  b.get().tensors["index_q"].at.offset = INT64_MAX;
  EXPECT_NE(b.refusal().find("reaches past 64 bits"), std::string::npos);
  b = q_quant();
  b.get().tensors["index_q"].at.shape = {INT64_MAX, 4, 128};
  b.get().tensors["index_weights"].at.shape = {INT64_MAX, 4};
  EXPECT_NE(b.refusal(), "");
  b = insert();
  b.get().tensors["k_cache"].at = {{2, INT64_MAX / 2, 584}, {INT64_MAX, 584, 1}, 0};
  set_integer(b, "block_size", INT64_MAX / 2);
  EXPECT_NE(b.refusal().find("do not fit 64 bits"), std::string::npos);
  b = q_quant();
  set_integer(b, "padded_num_heads", INT64_MAX);
  const bindings names = check(b.contract(), b.get(), false);
  EXPECT_THROW(outputs_of(b.contract(), b.get(), names), input_error);
}

// Sizes and attributes whose products leave 64 bits are some argument's too.
TEST(check, values_past_64_bits_name_their_argument) {
  const auto head_call = [](std::int64_t groups, std::int64_t nope) {
    call_builder b("fused_inv_rope_fp8_quant");
    b.add("o", dtype::bf16, {2, 4, 64});
    b.i64("positions", {0, 0});
    b.add("cos_sin_cache", dtype::f32, {1, 32});
    set_integer(b, "n_groups", groups);
    set_integer(b, "heads_per_group", 4);
    set_integer(b, "nope_dim", nope);
    set_integer(b, "rope_dim", 32);
    set_integer(b, "quant_group_size", 32);
    set_integer(b, "tma_aligned_scales", 0);
    set_integer(b, "quantize", 1);
    return b;
  };
  EXPECT_EQ(head_call(1, 32).refusal(), "");
  const std::string kernel = "fused_inv_rope_fp8_quant: ";
  EXPECT_EQ(head_call(INT64_MAX, 32).refusal(),
            kernel + "o: 'H == n_groups * heads_per_group' does not fit 64 bits");
  EXPECT_EQ(head_call(1, INT64_MAX).refusal(),
            kernel + "nope_dim: 'nope_dim + rope_dim >= 1' does not fit 64 bits");
}

TEST(check, outputs_where_asked_for) {
  call_builder b = q_quant();
  b.add("q_packed", dtype::u8, {3, 8, 64});
  b.add("q_scale", dtype::i32, {3, 8});
  EXPECT_EQ(b.refusal(false), "");
  EXPECT_EQ(b.refusal(true),
            "mxfp4_q_quant: weights: is missing: the argument is [T, padded_num_heads] f32");
  b.add("weights", dtype::f32, {3, 8});
  EXPECT_EQ(b.refusal(true), "");
  b.add("q_packed", dtype::u8, {3, 4, 64});
  EXPECT_EQ(b.refusal(true),
            "mxfp4_q_quant: q_packed: dimension 1 (head) is 4, must be padded_num_heads = 8");
}

TEST(check, zero_tokens_are_legal) {
  call_builder b = q_quant();
  b.add("index_q", dtype::bf16, {0, 4, 128});
  b.add("index_weights", dtype::f32, {0, 4});
  EXPECT_EQ(b.refusal(), "");
  b = insert();
  b.i64("slot_mapping", {});
  EXPECT_EQ(b.refusal(), "");
  b.add("k", dtype::bf16, {0, 512});
  EXPECT_EQ(b.refusal(), "");
}

TEST(paged_view_of, comes_from_the_contract) {
  call_builder b = insert();
  b.add("k_cache", dtype::u8, {{2, 4, 584}, {3000, 584, 1}, 32});
  const bindings names = check(b.contract(), b.get(), false);
  const auto view = paged_view_of(b.contract(), b.get(), names, "k_cache");
  ASSERT_TRUE(view);
  EXPECT_EQ(text_of(locate(*view, 32 + 3000 + 4 * 576 + 8 + 3)),
            "page 1, position 1, scale of block 3 (dims 192..255)");
  EXPECT_FALSE(paged_view_of(b.contract(), b.get(), names, "k"));
  set_integer(b, "use_fnuz", 1);
  b.add("k_cache", dtype::u8, {{2, 2400}, {3000, 1}, 0});
  const auto flat = paged_view_of(b.contract(), b.get(), names, "k_cache");
  ASSERT_TRUE(flat);
  EXPECT_EQ(text_of(locate(*flat, 3000 + 576)), "page 1, position 1, dim 0 (f8e4m3fnuz)");
}

// Every declaration's own expressions: well formed, and only over names that a call binds.
TEST(contracts, expressions_read_known_names) {
  for (const kernel_contract* contract : contracts()) {
    SCOPED_TRACE(contract->name);
    std::vector<std::string> known;
    for (const attribute_spec& spec : contract->attributes) {
      known.emplace_back(spec.name);
      const bool has_fallback = !spec.fallback.empty() || spec.kind == attribute_kind::text;
      EXPECT_TRUE(!spec.optional || has_fallback) << spec.name;
      EXPECT_FALSE(spec.meaning.empty()) << spec.name;
    }
    for (const argument_spec& spec : contract->arguments) {
      EXPECT_FALSE(spec.dtypes.empty()) << spec.name;
      EXPECT_FALSE(spec.meaning.empty()) << spec.name;
      EXPECT_EQ(list_of(spec.shape).size(), list_of(spec.axes).size()) << spec.name;
      if (spec.direction == role::output) continue;
      for (const std::string_view dimension : list_of(spec.shape)) {
        if (dimension == "...") continue;
        const auto names = names_in(dimension);
        if (names.size() == 1 && names[0] == dimension) known.push_back(names[0]);
      }
    }
    const auto expect_known = [&](std::string_view expression) {
      if (expression.empty()) return;
      for (const std::string& name : names_in(expression)) {
        EXPECT_NE(std::find(known.begin(), known.end(), name), known.end())
            << name << " in " << expression;
      }
    };
    for (const argument_spec& spec : contract->arguments) {
      for (const std::string_view dimension : list_of(spec.shape)) {
        if (dimension != "...") expect_known(dimension);
      }
      expect_known(spec.when);
      expect_known(spec.record);
      expect_known(spec.block_size);
    }
    for (const precondition& rule : contract->preconditions) {
      expect_known(rule.holds);
      EXPECT_TRUE(contract->argument(rule.argument) != nullptr ||
                  contract->attribute(rule.argument) != nullptr)
          << rule.argument;
    }
  }
}

TEST(contracts, each_kernel_has_a_reference) {
  for (const kernel_contract* contract : contracts()) {
    EXPECT_NE(reference_of(contract->name), nullptr) << contract->name;
  }
  EXPECT_EQ(reference_of("mxfp4"), nullptr);
}

}  // namespace
}  // namespace kvcts
