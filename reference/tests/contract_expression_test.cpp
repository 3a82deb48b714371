#include <gtest/gtest.h>

#include "reference/contract/contract.h"

namespace kvcts {
namespace {

std::int64_t value_of(std::string_view expression) {
  call c;
  c.attributes["op"] = std::string("o_chunk");
  c.attributes["ratio"] = std::int64_t{4};
  c.attributes["eps"] = 1e-5;
  c.tensors["k"] = {};
  const bindings names = {{"T", 7}, {"D", 128}, {"low", -7}, {"huge", INT64_MAX}};
  return evaluate(expression, names, c);
}

template <class Error>
std::string message_of(std::string_view expression) {
  try {
    value_of(expression);
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

TEST(expression, arithmetic) {
  EXPECT_EQ(value_of("128"), 128);
  EXPECT_EQ(value_of("D/2 + D/32"), 68);
  EXPECT_EQ(value_of("2 + 3 * 4 - 5"), 9);
  EXPECT_EQ(value_of("(2 + 3) * -4"), -20);
  EXPECT_EQ(value_of("10 - 3 - 2"), 5);
  EXPECT_EQ(value_of("64 / 4 / 2"), 8);
  EXPECT_EQ(value_of("ratio * T"), 28);
  EXPECT_EQ(value_of("- - 3"), 3);
}

TEST(expression, division_rounds_down) {
  EXPECT_EQ(value_of("low / 2"), -4);
  EXPECT_EQ(value_of("low % 2"), 1);
  EXPECT_EQ(value_of("7 / -2"), -4);
  EXPECT_EQ(value_of("7 % -2"), -1);
  EXPECT_EQ(value_of("-8 / 2"), -4);
  EXPECT_EQ(value_of("-8 % 2"), 0);
}

TEST(expression, functions) {
  EXPECT_EQ(value_of("min(T, 3)"), 3);
  EXPECT_EQ(value_of("max(T, D)"), 128);
  EXPECT_EQ(value_of("ceil(T, 4)"), 8);
  EXPECT_EQ(value_of("ceil(8, 4)"), 8);
  EXPECT_EQ(value_of("ceil(0, 4)"), 0);
  EXPECT_EQ(value_of("ceil(-5, 4)"), -4);
  EXPECT_EQ(value_of("max(min(T, 3), ceil(1, 2))"), 3);
  EXPECT_EQ(value_of("has(k)"), 1);
  EXPECT_EQ(value_of("has( q )"), 0);
}

TEST(expression, truth) {
  EXPECT_EQ(value_of("T == 7 && D > 7"), 1);
  EXPECT_EQ(value_of("T != 7 || D <= 7"), 0);
  EXPECT_EQ(value_of("T >= 7"), 1);
  EXPECT_EQ(value_of("T < 7"), 0);
  EXPECT_EQ(value_of("!has(q) && !(T == 8)"), 1);
  EXPECT_EQ(value_of("1 || 0 && 0"), 1);
  EXPECT_EQ(value_of("(1 || 0) && 0"), 0);
  EXPECT_EQ(value_of("5 && 3"), 1);
}

TEST(expression, text) {
  EXPECT_EQ(value_of("op == 'o_chunk'"), 1);
  EXPECT_EQ(value_of("op != 'o_chunk'"), 0);
  EXPECT_EQ(value_of("(op == 'o') * 32 + (op == 'o_chunk') * 16"), 16);
}

TEST(expression, a_decided_side_looks_nothing_up) {
  EXPECT_EQ(value_of("!has(q) || W > 0"), 1);
  EXPECT_EQ(value_of("has(q) && W / 0 > 0"), 0);
}

TEST(expression, malformed_ones_say_where) {
  EXPECT_EQ(message_of<std::logic_error>("T + "),
            "expression 'T + ': expected a value at column 5");
  EXPECT_EQ(message_of<std::logic_error>("(T"), "expression '(T': expected ')' at column 3");
  EXPECT_EQ(message_of<std::logic_error>("T T"),
            "expression 'T T': expected an operator or the end at column 3");
  EXPECT_EQ(message_of<std::logic_error>("min(T)"),
            "expression 'min(T)': expected ',' at column 6");
  EXPECT_EQ(message_of<std::logic_error>("W + 1"), "expression 'W + 1': the name 'W' is not bound");
  EXPECT_EQ(message_of<std::logic_error>("op == 'o"),
            "expression 'op == 'o': expected a closing quote at column 7");
  EXPECT_NE(message_of<std::logic_error>("op + 1"), "");
  EXPECT_NE(message_of<std::logic_error>("op == 1"), "");
  EXPECT_NE(message_of<std::logic_error>("op < 'a'"), "");
  EXPECT_NE(message_of<std::logic_error>("eps > 0"), "");
  EXPECT_NE(message_of<std::logic_error>("floor(T, 2)"), "");
  EXPECT_NE(message_of<std::logic_error>("99999999999999999999"), "");
  EXPECT_NE(message_of<std::logic_error>(""), "");
  EXPECT_NE(message_of<std::logic_error>("T = 7"), "");
  EXPECT_NE(message_of<std::logic_error>("1 < 2 < 3"), "");
}

TEST(expression, values_that_leave_the_range_are_input_errors) {
  EXPECT_EQ(message_of<input_error>("huge * 2"), "'huge * 2' does not fit 64 bits");
  EXPECT_EQ(message_of<input_error>("huge + 1"), "'huge + 1' does not fit 64 bits");
  EXPECT_EQ(message_of<input_error>("-huge - 2"), "'-huge - 2' does not fit 64 bits");
  EXPECT_EQ(message_of<input_error>("(-huge - 1) / -1"), "'(-huge - 1) / -1' does not fit 64 bits");
  EXPECT_EQ(message_of<input_error>("T / (T - 7)"), "'T / (T - 7)' divides by zero");
  EXPECT_EQ(message_of<input_error>("T % 0"), "'T % 0' divides by zero");
  EXPECT_EQ(message_of<input_error>("ceil(T, 0)"),
            "'ceil(T, 0)' rounds up to a multiple of a number below 1");
}

TEST(expression, names) {
  EXPECT_EQ(names_in("min(T, D) + T * (has(k) && op == 'x')"),
            (std::vector<std::string>{"T", "D", "op"}));
  EXPECT_TRUE(names_in("128").empty());
}

TEST(expression, lists_split_outside_parentheses) {
  EXPECT_EQ(list_of("T, max(a, b), 128"), (std::vector<std::string_view>{"T", "max(a, b)", "128"}));
  EXPECT_EQ(list_of("T"), (std::vector<std::string_view>{"T"}));
  EXPECT_TRUE(list_of("").empty());
}

}  // namespace
}  // namespace kvcts
