#include "reports/tests/schema.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <stdexcept>

namespace kvcts {
namespace {

using json = nlohmann::json;

bool is_of(const json& value, const std::string& type) {
  if (type == "object") return value.is_object();
  if (type == "array") return value.is_array();
  if (type == "string") return value.is_string();
  if (type == "integer") return value.is_number_integer();
  if (type == "number") return value.is_number();
  if (type == "boolean") return value.is_boolean();
  if (type == "null") return value.is_null();
  throw std::logic_error("schema: unknown type " + type);
}

// `type` is a name or a list of names.
bool is_of_any(const json& value, const json& type) {
  if (type.is_string()) return is_of(value, type);
  return std::any_of(type.begin(), type.end(),
                     [&](const json& one) { return is_of(value, one.get<std::string>()); });
}

class checker {
 public:
  explicit checker(const json& root) : root_(root) {}

  void check(const json& value, const json& schema, const std::string& path) {
    if (schema.contains("$ref")) {
      const std::string target = schema["$ref"].get<std::string>().substr(1);
      check(value, root_.at(json::json_pointer(target)), path);
      return;
    }
    refuse_unknown_keywords(schema);
    if (schema.contains("type") && !is_of_any(value, schema["type"])) {
      const json& type = schema["type"];
      fault(path, "is no " + (type.is_string() ? type.get<std::string>() : type.dump()));
      return;
    }
    if (schema.contains("const") && value != schema["const"]) {
      fault(path, "is not " + schema["const"].dump());
    }
    if (schema.contains("enum") &&
        std::find(schema["enum"].begin(), schema["enum"].end(), value) == schema["enum"].end()) {
      fault(path, "is none of " + schema["enum"].dump());
    }
    if (schema.contains("minimum") && value.is_number() && value < schema["minimum"]) {
      fault(path, "is below " + schema["minimum"].dump());
    }
    if (schema.contains("minItems") && value.size() < schema["minItems"]) {
      fault(path, "has fewer than " + schema["minItems"].dump() + " items");
    }
    if (schema.contains("maxItems") && value.size() > schema["maxItems"]) {
      fault(path, "has more than " + schema["maxItems"].dump() + " items");
    }
    if (schema.contains("pattern") &&
        !std::regex_search(value.get<std::string>(),
                           std::regex(schema["pattern"].get<std::string>()))) {
      fault(path, "does not match " + schema["pattern"].get<std::string>());
    }
    if (value.is_object()) {
      check_members(value, schema, path);
    }
    if (value.is_array() && schema.contains("items")) {
      for (std::size_t i = 0; i < value.size(); ++i) {
        check(value[i], schema["items"], path + "/" + std::to_string(i));
      }
    }
  }

  std::vector<std::string> faults;

 private:
  void check_members(const json& value, const json& schema, const std::string& path) {
    for (const json& name : schema.value("required", json::array())) {
      if (!value.contains(name.get<std::string>())) {
        fault(path, "lacks " + name.get<std::string>());
      }
    }
    const json properties = schema.value("properties", json::object());
    const json others = schema.value("additionalProperties", json(true));
    for (const auto& [name, member] : value.items()) {
      const std::string at = path + "/" + name;
      if (properties.contains(name)) {
        check(member, properties[name], at);
      } else if (others.is_object()) {
        check(member, others, at);
      } else if (!others.get<bool>()) {
        fault(at, "is not in the schema");
      }
    }
  }

  static void refuse_unknown_keywords(const json& schema) {
    static const std::set<std::string> known = {
        "$schema", "title",    "definitions", "type",    "additionalProperties",
        "const",   "enum",     "required",    "minimum", "properties",
        "items",   "minItems", "maxItems",    "pattern"};
    for (const auto& [name, rule] : schema.items()) {
      if (known.count(name) == 0) {
        throw std::logic_error("schema: unknown keyword " + name);
      }
    }
  }

  void fault(const std::string& path, const std::string& what) {
    faults.push_back(path + ": " + what);
  }

  const json& root_;
};

}  // namespace

std::vector<std::string> schema_faults(const std::string& document, const std::string& schema) {
  const json root = json::parse(schema);
  checker c(root);
  c.check(json::parse(document), root, "");
  return c.faults;
}

}  // namespace kvcts
