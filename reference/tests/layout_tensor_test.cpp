#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "reference/layout/tensor.h"

namespace kvcts {
namespace {

constexpr std::int64_t largest = std::numeric_limits<std::int64_t>::max();

TEST(tensor, dtypes_have_names_and_sizes) {
  const dtype all[] = {dtype::bf16,  dtype::f32,    dtype::f8e4m3fn, dtype::f8e4m3fnuz,
                       dtype::ue8m0, dtype::e2m1x2, dtype::u8,       dtype::i32,
                       dtype::i64,   dtype::boolean};
  for (const dtype type : all) {
    EXPECT_EQ(dtype_from_name(name_of(type)), type);
  }
  EXPECT_EQ(name_of(dtype::boolean), "bool");
  EXPECT_EQ(name_of(dtype::f8e4m3fnuz), "f8e4m3fnuz");
  EXPECT_EQ(dtype_from_name("f16"), std::nullopt);
  EXPECT_EQ(size_of(dtype::bf16), 2u);
  EXPECT_EQ(size_of(dtype::i64), 8u);
  EXPECT_EQ(size_of(dtype::boolean), 1u);
  EXPECT_TRUE(same_storage(dtype::u8, dtype::e2m1x2));
  EXPECT_TRUE(same_storage(dtype::i32, dtype::i32));
  EXPECT_FALSE(same_storage(dtype::u8, dtype::f8e4m3fn));
  EXPECT_FALSE(same_storage(dtype::i32, dtype::f32));
}

TEST(tensor, dense_extents) {
  const extent e = dense({3, 4, 5});
  EXPECT_EQ(e.strides, (std::vector<std::int64_t>{20, 5, 1}));
  EXPECT_TRUE(is_dense(e));
  EXPECT_TRUE(is_dense({{3, 1, 5}, {5, 77, 1}, 0}));  // a dimension of 1 has no stride to speak of
  EXPECT_FALSE(is_dense({{3, 4, 5}, {24, 5, 1}, 0}));
  EXPECT_FALSE(is_dense({{3, 4, 5}, {20, 5, 1}, 8}));
  EXPECT_TRUE(is_dense({{0, 4}, {9, 1}, 0}));
  EXPECT_TRUE(is_dense(dense({})));
}

TEST(tensor, counts_and_reach) {
  EXPECT_EQ(count({3, 4, 5}), 60);
  EXPECT_EQ(count({3, 0, 5}), 0);
  EXPECT_EQ(count({}), 1);
  EXPECT_EQ(reach(dense({3, 4})), 12);
  EXPECT_EQ(reach({{3, 4}, {10, 1}, 7}), 7 + 2 * 10 + 3 + 1);
  EXPECT_EQ(reach({{0, 4}, {10, 1}, 7}), 7);
  EXPECT_EQ(reach({{40000, 1}, {1039680, 1}, 0}), std::int64_t{39999} * 1039680 + 1);
  // What does not fit in 64 bits stays large.
  EXPECT_EQ(count({largest, 3}), largest);
  EXPECT_EQ(reach({{3, 4}, {largest, 1}, 0}), largest);
}

TEST(tensor, elements_of_a_strided_view) {
  std::vector<std::byte> storage(200);
  tensor_view view{storage.data(), storage.size(), dtype::bf16, {{3, 4}, {20, 2}, 5}};
  EXPECT_EQ(view.element(2, 3) - storage.data(), 2 * (5 + 2 * 20 + 3 * 2));
  EXPECT_EQ(view.element(1) - storage.data(), 2 * (5 + 20));
  store<std::uint16_t>(view.element(1, 1), 0x1234);
  EXPECT_EQ(load<std::uint16_t>(storage.data() + 2 * (5 + 20 + 2)), 0x1234);
}

std::string message_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const input_error& error) {
    return error.what();
  }
  return "no error";
}

TEST(call, arguments_and_attributes) {
  call c;
  c.kernel = "some_kernel";
  c.tensors["x"] = {};
  c.attributes["n"] = std::int64_t{7};
  c.attributes["eps"] = 1e-6;
  c.attributes["rule"] = std::string("pow2");
  EXPECT_NE(c.find("x"), nullptr);
  EXPECT_EQ(c.find("y"), nullptr);
  EXPECT_EQ(c.integer("n"), 7);
  EXPECT_EQ(c.integer_or("n", 1), 7);
  EXPECT_EQ(c.integer_or("m", 1), 1);
  EXPECT_EQ(c.real("eps"), 1e-6f);
  EXPECT_EQ(c.text("rule"), "pow2");
  EXPECT_EQ(c.text_or("other", "amax"), "amax");
  EXPECT_EQ(message_of([&] { c.tensor("y"); }),
            "some_kernel: argument 'y' is missing: add it to the call");
  EXPECT_EQ(message_of([&] { c.integer("m"); }),
            "some_kernel: attribute 'm' is missing: add it to the call");
  EXPECT_EQ(message_of([&] { c.integer("eps"); }),
            "some_kernel: attribute 'eps' must be an integer");
  EXPECT_EQ(message_of([&] { c.real("n"); }), "some_kernel: attribute 'n' must be a real number");
  EXPECT_EQ(message_of([&] { c.text("n"); }), "some_kernel: attribute 'n' must be text");
}

}  // namespace
}  // namespace kvcts
