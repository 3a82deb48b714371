// The expression language of contract.h: a recursive-descent evaluator.
#include <algorithm>
#include <cctype>
#include <stdexcept>
#include <string>

#include "reference/contract/contract.h"

namespace kvcts {
namespace {

struct value {
  bool is_text = false;
  std::int64_t number = 0;
  std::string_view text = {};
};

bool starts_name(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_'; }
bool continues_name(char c) {
  return starts_name(c) || std::isdigit(static_cast<unsigned char>(c));
}

class evaluator {
 public:
  evaluator(std::string_view expression, const bindings* names, const call* context,
            std::vector<std::string>* collected)
      : text_(expression), names_(names), context_(context), collected_(collected) {}

  std::int64_t run() {
    const bool live = collected_ == nullptr;
    const value result = either(live);
    skip_space();
    if (at_ != text_.size()) malformed("an operator or the end");
    return number(result, live);
  }

 private:
  // `live` is false where the value does not matter (the right side of a decided && or ||): there
  // nothing is looked up, so that "!has(x) || W > 0" needs no W.
  value either(bool live) {
    value left = both(live);
    while (take("||")) {
      const bool decided = live && number(left, live) != 0;
      const value right = both(live && !decided);
      left = truth(decided || (live && number(right, live && !decided) != 0));
    }
    return left;
  }

  value both(bool live) {
    value left = comparison(live);
    while (take("&&")) {
      const bool holds = live && number(left, live) != 0;
      const value right = comparison(holds);
      left = truth(holds && number(right, holds) != 0);
    }
    return left;
  }

  value comparison(bool live) {
    const value left = sum(live);
    for (const std::string_view op : {"==", "!=", "<=", ">=", "<", ">"}) {
      if (!take(op)) continue;
      const value right = sum(live);
      if (!live) return truth(false);
      if (left.is_text != right.is_text) malformed("both sides to be numbers or both to be text");
      if (left.is_text && op != "==" && op != "!=") malformed("== or != between texts");
      const bool equal = left.is_text ? left.text == right.text : left.number == right.number;
      if (op == "==") return truth(equal);
      if (op == "!=") return truth(!equal);
      if (op == "<=") return truth(left.number <= right.number);
      if (op == ">=") return truth(left.number >= right.number);
      return truth(op == "<" ? left.number < right.number : left.number > right.number);
    }
    return left;
  }

  value sum(bool live) {
    value left = product(live);
    for (;;) {
      const char op = take("+") ? '+' : take("-") ? '-' : '\0';
      if (op == '\0') return left;
      const value right = product(live);
      if (live) left = arithmetic(op, number(left, live), number(right, live));
    }
  }

  value product(bool live) {
    value left = unary(live);
    for (;;) {
      const char op = take("*") ? '*' : take("/") ? '/' : take("%") ? '%' : '\0';
      if (op == '\0') return left;
      const value right = unary(live);
      if (live) left = arithmetic(op, number(left, live), number(right, live));
    }
  }

  value unary(bool live) {
    if (take("-")) {
      const value operand = unary(live);
      return live ? arithmetic('-', 0, number(operand, live)) : value{};
    }
    skip_space();
    const bool is_not = at_ < text_.size() && text_[at_] == '!' && text_.substr(at_, 2) != "!=";
    if (is_not && take("!")) return truth(number(unary(live), live) == 0);
    return primary(live);
  }

  value primary(bool live) {
    if (take("(")) {
      const value inner = either(live);
      require(")");
      return inner;
    }
    skip_space();
    const std::size_t from = at_;
    if (at_ == text_.size()) malformed("a value");
    const char c = text_[at_];
    if (c == '\'') {
      const std::size_t end = text_.find('\'', at_ + 1);
      if (end == std::string_view::npos) malformed("a closing quote");
      at_ = end + 1;
      return {true, 0, text_.substr(from + 1, end - from - 1)};
    }
    if (std::isdigit(static_cast<unsigned char>(c)) != 0) return literal();
    if (!starts_name(c)) malformed("a value");
    while (at_ < text_.size() && continues_name(text_[at_])) ++at_;
    const std::string_view name = text_.substr(from, at_ - from);
    return take("(") ? function(name, live) : named(name, live);
  }

  value literal() {
    std::int64_t number = 0;
    while (at_ < text_.size() && std::isdigit(static_cast<unsigned char>(text_[at_])) != 0) {
      if (__builtin_mul_overflow(number, 10, &number) ||
          __builtin_add_overflow(number, text_[at_] - '0', &number)) {
        malformed("a number of 64 bits");
      }
      ++at_;
    }
    return {false, number, {}};
  }

  value function(std::string_view name, bool live) {
    if (name == "has") {
      skip_space();
      const std::size_t from = at_;
      while (at_ < text_.size() && continues_name(text_[at_])) ++at_;
      const std::string_view argument = text_.substr(from, at_ - from);
      if (argument.empty()) malformed("an argument's name");
      require(")");
      return truth(live && context_->tensors.find(argument) != context_->tensors.end());
    }
    if (name != "min" && name != "max" && name != "ceil") malformed("min, max, ceil or has");
    const value first = either(live);
    require(",");
    const value second = either(live);
    require(")");
    if (!live) return {};
    const std::int64_t a = number(first, live);
    const std::int64_t b = number(second, live);
    if (name == "min") return {false, std::min(a, b), {}};
    if (name == "max") return {false, std::max(a, b), {}};
    if (b <= 0) out_of_range("rounds up to a multiple of a number below 1");
    const std::int64_t rest = arithmetic('%', a, b).number;
    return rest == 0 ? value{false, a, {}} : arithmetic('+', a, b - rest);
  }

  value named(std::string_view name, bool live) {
    if (collected_ != nullptr &&
        std::find(collected_->begin(), collected_->end(), name) == collected_->end()) {
      collected_->emplace_back(name);
    }
    if (!live) return {};
    if (const auto bound = names_->find(name); bound != names_->end()) {
      return {false, bound->second, {}};
    }
    const auto attribute = context_->attributes.find(name);
    if (attribute == context_->attributes.end()) {
      fail("the name '" + std::string(name) + "' is not bound");
    }
    if (const auto* integer = std::get_if<std::int64_t>(&attribute->second)) {
      return {false, *integer, {}};
    }
    if (const auto* text = std::get_if<std::string>(&attribute->second)) return {true, 0, *text};
    fail("the real attribute '" + std::string(name) + "' cannot be used");
  }

  value arithmetic(char op, std::int64_t a, std::int64_t b) {
    std::int64_t result = 0;
    bool overflow = false;
    if (op == '+') overflow = __builtin_add_overflow(a, b, &result);
    if (op == '-') overflow = __builtin_sub_overflow(a, b, &result);
    if (op == '*') overflow = __builtin_mul_overflow(a, b, &result);
    if (op == '/' || op == '%') {
      if (b == 0) out_of_range("divides by zero");
      overflow = a == INT64_MIN && b == -1;
      if (!overflow) {
        const std::int64_t rest = a % b;
        const bool rounds_down = rest != 0 && (rest < 0) != (b < 0);
        if (op == '/') result = a / b - (rounds_down ? 1 : 0);
        if (op == '%') result = rest + (rounds_down ? b : 0);
      }
    }
    if (overflow) out_of_range("does not fit 64 bits");
    return {false, result, {}};
  }

  static value truth(bool holds) { return {false, holds ? 1 : 0, {}}; }

  std::int64_t number(const value& v, bool live) {
    if (live && v.is_text) malformed("a number, not text");
    return v.number;
  }

  void skip_space() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  bool take(std::string_view token) {
    skip_space();
    if (text_.substr(at_, token.size()) != token) return false;
    at_ += token.size();
    return true;
  }
  void require(std::string_view token) {
    if (!take(token)) malformed("'" + std::string(token) + "'");
  }

  [[noreturn]] void malformed(const std::string& expected) {
    fail("expected " + expected + " at column " + std::to_string(at_ + 1));
  }
  [[noreturn]] void fail(const std::string& why) {
    throw std::logic_error("expression '" + std::string(text_) + "': " + why);
  }
  [[noreturn]] void out_of_range(const std::string& why) {
    throw input_error("'" + std::string(text_) + "' " + why);
  }

  std::string_view text_;
  const bindings* names_;
  const call* context_;
  std::vector<std::string>* collected_;
  std::size_t at_ = 0;
};

}  // namespace

std::int64_t evaluate(std::string_view expression, const bindings& names, const call& context) {
  return evaluator(expression, &names, &context, nullptr).run();
}

std::vector<std::string> names_in(std::string_view expression) {
  std::vector<std::string> names;
  evaluator(expression, nullptr, nullptr, &names).run();
  return names;
}

std::vector<std::string_view> list_of(std::string_view text) {
  std::vector<std::string_view> parts;
  int depth = 0;
  std::size_t from = 0;
  const auto trimmed = [](std::string_view part) {
    while (!part.empty() && part.front() == ' ') part.remove_prefix(1);
    while (!part.empty() && part.back() == ' ') part.remove_suffix(1);
    return part;
  };
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '(') ++depth;
    if (text[i] == ')') --depth;
    if (text[i] != ',' || depth != 0) continue;
    parts.push_back(trimmed(text.substr(from, i - from)));
    from = i + 1;
  }
  const std::string_view last = trimmed(text.substr(from));
  if (!last.empty()) parts.push_back(last);
  return parts;
}

}  // namespace kvcts
