// kvcts report show: any form of a report, from its report.json alone.
#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <fstream>

#include "conformance/cli/commands.h"
#include "conformance/cli/text.h"
#include "reference/layout/tensor.h"
#include "reports/reports.h"

namespace kvcts {

int report_show_command(const report_show_arguments& arguments) {
  std::string path = arguments.report;
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) path += "/report.json";
  const run_result result = read_report(path);
  std::string text;
  if (arguments.html) text = report_html(result);
  if (arguments.markdown) text = report_markdown(result);
  if (arguments.junit) text = report_junit(result);
  if (text.empty()) {
    if (!arguments.output.empty()) {
      throw input_error("report show: -o needs a form: add --html, --md or --junit");
    }
    print_result(result);
  } else if (arguments.output.empty()) {
    std::fwrite(text.data(), 1, text.size(), stdout);
  } else {
    std::ofstream out(arguments.output, std::ios::binary | std::ios::trunc);
    out.write(text.data(), static_cast<std::streamsize>(text.size()));
    out.close();
    if (!out) {
      throw input_error(arguments.output +
                        ": cannot be written; name a file in a folder that can be");
    }
  }
  return 0;
}

}  // namespace kvcts
