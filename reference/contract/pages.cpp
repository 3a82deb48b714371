#include "reference/contract/pages.h"

namespace kvcts {

std::optional<paged_view> paged_view_of(const kernel_contract& contract, const call& context,
                                        const bindings& names, std::string_view argument) {
  const argument_spec* spec = contract.argument(argument);
  const tensor_view* v = context.find(argument);
  if (spec == nullptr || v == nullptr || spec->strides != stride_rule::pages) return std::nullopt;
  const bool fnuz = context.integer_or("use_fnuz", 0) != 0 ||
                    context.text_or("fp8_format", "e4m3fn") == "e4m3fnuz";
  const auto element = static_cast<std::int64_t>(size_of(v->type));
  const std::int64_t bytes = evaluate(spec->record, names, context) * element;
  // A record attribute of text names the record.
  const std::string name =
      spec->record_name.empty() ? context.text_or("record", "") : std::string(spec->record_name);
  const std::optional<paged_record> record =
      record_of(name, bytes, fnuz ? dtype::f8e4m3fnuz : dtype::f8e4m3fn);
  if (!record) return std::nullopt;
  const bool flat = v->rank() == 2;
  return paged_view{
      .record = *record,
      .first_byte = v->at.offset * element,
      .pages = v->dim(0),
      .block_size = flat ? evaluate(spec->block_size, names, context) : v->dim(1),
      .page_stride = v->stride(0) * element,
      .entry_stride = flat ? bytes : v->stride(1) * element,
      .tiled = context.integer_or("shuffle", 0) != 0,
  };
}

}  // namespace kvcts
