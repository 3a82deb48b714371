#include <CLI/CLI.hpp>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <functional>
#include <new>
#include <string>

#include "common/printable.h"
#include "conformance/cli/commands.h"
#include "conformance/cli/interrupt.h"
#include "conformance/cli/text.h"
#include "reference/layout/tensor.h"
#include "vectors/probe.h"
#include "vectors/version.h"

namespace kvcts {
namespace {

// One line, whatever a library says.
int refuse(std::string message) {
  for (char& c : message) {
    if (c == '\n') c = ' ';
  }
  while (!message.empty() && message.back() == ' ') message.pop_back();
  std::fprintf(stderr, "kvcts: %s\n", printable(message).c_str());
  return 2;
}

// CLI11 would say only that a subcommand is missing.
void refuse_unknown_command(const CLI::App& app, int argc, char** argv) {
  if (argc < 2 || argv[1][0] == '-') return;
  std::string known;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (command->check_name(argv[1])) return;
    if (!command->get_group().empty()) known += " " + command->get_name();
  }
  throw input_error(std::string("unknown command '") + argv[1] + "': the commands are" + known);
}

constexpr const char* candidate_help =
    "reference, cpu, cuda, or the path of a shared library (kvcts_candidate.h)";
constexpr const char* speed_help = "what bench --json wrote, for the report";
constexpr const char* full_help = "fail where a case is not claimed";
constexpr const char* full_verdict_help = "fail where a case is not claimed or is waived";

// A sign would wrap round, and a NaN is in every range.
std::string without_sign(const std::string& number) {
  const bool digits = !number.empty() && number.find_first_not_of("0123456789.e+") == number.npos;
  return digits ? "" : "must be a number without a sign, not " + number;
}

// What lies past 64 bits would become the largest number.
std::string is_whole(const std::string& number) {
  std::uint64_t value = 0;
  const char* end = number.data() + number.size();
  const auto [at, error] = std::from_chars(number.data(), end, value);
  return error == std::errc() && at == end
             ? ""
             : "must be a whole number from 0 to 18446744073709551615, not " + number;
}

void add_timeout(CLI::App* to, double& seconds) {
  to->add_option("--timeout", seconds, "seconds that a call of a candidate's library may take")
      ->check(without_sign)
      ->check(CLI::Range(0.001, 1e6))
      ->capture_default_str();
}

void add_shard(CLI::App* to, std::string& part) {
  to->add_option("--shard", part, "I/N: part I of N (docs/slurm.md); merge with `report merge`");
}

void add_devices(CLI::App* to, std::string& devices) {
  to->add_option("--devices", devices,
                 "CUDA devices that the cases are spread over: all, or numbers (0,2)");
}

void add_suite_options(CLI::App* to, suite_arguments& suite) {
  to->add_option("--kernels", suite.kernels, "kernels, as patterns separated by commas");
  to->add_option("--level", suite.level, "smoke, acceptance or exhaustive");
  to->add_option("--profile", suite.profile, "nvidia or ieee");
  to->add_option("--seed", suite.seed, "seed of the generators")->check(is_whole);
}

}  // namespace

int run_cli(int argc, char** argv) {
  CLI::App app("KVCTS: does your quantized KV-cache kernel write the same bytes?", "kvcts");
  app.require_subcommand(1);
  app.set_version_flag("--version", KVCTS_VERSION " (suite " + std::to_string(suite_version) + ")");
  std::function<int()> chosen;
  const auto choose = [&chosen](CLI::App* on, std::function<int()> what) {
    on->callback([&chosen, what = std::move(what)] { chosen = what; });
  };
  int threads = 0;
  const auto add_threads = [&threads](CLI::App* to) {
    to->add_option("--threads", threads, "0: all cores")->check(CLI::Range(0, 4096));
  };

  std::string kernel;
  suite_arguments listed;
  CLI::App* list = app.add_subcommand("list", "the kernels; the cases of one kernel");
  list->add_option("KERNEL", kernel);
  list->add_option("--level", listed.level, "smoke, acceptance or exhaustive");
  choose(list, [&] { return list_command(kernel, listed); });

  CLI::App* describe = app.add_subcommand("describe", "a kernel's arguments, rules and cases");
  describe->add_option("KERNEL", kernel)->required();
  bool interface = false;
  describe->add_flag("--abi", interface, "what a call of kvcts_candidate.h holds for it");
  choose(describe, [&] { return describe_command(kernel, interface); });

  std::string folder, language = "c";
  CLI::App* init = app.add_subcommand(
      "init-candidate", "start a candidate of your own: a library that builds at once");
  init->add_option("DIR", folder, "a new or empty folder")->required();
  init->add_option("--language", language, "c or c++")->capture_default_str();
  choose(init, [&] { return init_candidate_command(folder, language); });

  run_arguments run;
  CLI::App* run_app = app.add_subcommand("run", "run the cases on a candidate, judge every byte");
  add_suite_options(run_app, run.suite);
  add_threads(run_app);
  run_app->add_option("--candidate", run.candidate, candidate_help)->capture_default_str();
  add_timeout(run_app, run.timeout);
  add_devices(run_app, run.devices);
  run_app->add_option("--repeat", run.repeat, "calls of each case that must give the same bytes")
      ->check(CLI::Range(1, 1000000));
  run_app->add_option("--vectors", run.vectors,
                      "vector files (alone, unless --level is given too)");
  run_app->add_option("--case", run.only_case, "only the cases of this name or pattern");
  run_app->add_option("--report", run.report, "folder for the reports");
  run_app->add_option("--speed", run.speed, speed_help);
  run_app->add_option("--evidence", run.evidence, "record digests of every output in this file");
  run_app->add_flag("--require-evidence", run.require_evidence,
                    "fail where the recorded GPU evidence is stale or missing");
  run_app->add_flag("--require-full", run.require_full, full_help);
  add_shard(run_app, run.shard);
  run_app->add_option("--checkpoint", run.checkpoint,
                      "keep each result in this file; a run that was killed goes on from it");
  choose(run_app, [&] {
    run.threads = threads;
    return run_command(run);
  });

  CLI::App* vectors = app.add_subcommand("vectors", "vector files");
  vectors->require_subcommand(1);
  suite_arguments generated;
  std::string output, golden, file, kernels;
  CLI::App* generate =
      vectors->add_subcommand("generate", "write a suite (level smoke by default)");
  add_suite_options(generate, generated);
  add_threads(generate);
  CLI::Option* to_file = generate->add_option("-o,--output", output, "the file");
  generate->add_option("--golden", golden, "write the golden files into this folder")
      ->excludes(to_file);
  choose(generate, [&] {
    if (!golden.empty()) return generate_golden_command(golden, threads);
    if (output.empty()) throw input_error("vectors generate: name the file with -o FILE");
    return generate_command(generated, output, threads);
  });
  CLI::App* inspect = vectors->add_subcommand("inspect", "what a vector file holds");
  inspect->add_option("FILE", file)->required();
  choose(inspect, [&] { return inspect_command(file); });
  CLI::App* check = vectors->add_subcommand("check", "the reference against a vector file");
  check->add_option("FILE", file)->required();
  check->add_option("--kernels", kernels, "kernels, as patterns separated by commas");
  add_threads(check);
  choose(check, [&] { return check_command(file, kernels, threads); });

  exchange_arguments files;
  CLI::App* verify = app.add_subcommand("verify", "a filled copy of a suite against the suite");
  verify->add_option("SUITE", files.a)->required();
  verify->add_option("ACTUAL", files.b)->required();
  verify->add_option("--report", files.report, "folder for the reports");
  choose(verify, [&] { return verify_command(files); });
  CLI::App* compare =
      app.add_subcommand("compare", "what two engines wrote into copies of one suite");
  compare->add_option("A", files.a)->required();
  compare->add_option("B", files.b)->required();
  compare->add_option("--report", files.report, "folder for the reports");
  choose(compare, [&] { return compare_command(files); });

  CLI::App* report = app.add_subcommand("report", "reports and submissions");
  report->require_subcommand(1);
  report_show_arguments told;
  CLI::App* show = report->add_subcommand("show", "a report.json in another form");
  show->add_option("REPORT", told.report, "report.json, or its folder")->required();
  CLI::Option* html = show->add_flag("--html", told.html, "report.html");
  CLI::Option* markdown = show->add_flag("--md", told.markdown, "report.md")->excludes(html);
  show->add_flag("--junit", told.junit, "junit.xml")->excludes(html)->excludes(markdown);
  show->add_option("-o,--output", told.output, "the file; else standard output");
  choose(show, [&] { return report_show_command(told); });

  decode_arguments page;
  CLI::App* decode = app.add_subcommand("decode", "one token's record of a raw page dump");
  decode->add_option("RECORD", page.record, "name or bytes: 584, 528, 288, 68, 132, 656, ...")
      ->required();
  decode->add_option("FILE", page.file, "raw bytes of one page or more")->required();
  decode->add_option("--block-size", page.block_size, "tokens a page")->required();
  decode->add_option("--token", page.token, "position of the token in its page")->required();
  decode->add_option("--page", page.page, "page of the file")->capture_default_str();
  decode->add_option("--page-stride", page.page_stride, "bytes from page to page");
  decode->add_option("--dims", page.dims, "dims of an indexer key (128)");
  decode->add_flag("--fnuz", page.fnuz, "E4M3 codes are FNUZ");
  decode->add_flag("--tiled", page.tiled, "values in tiles of 16 tokens by 16 bytes");
  decode->add_flag("--json", page.json, "JSON instead of a table");
  choose(decode, [&] { return decode_command(page); });

  bench_arguments measured;
  CLI::App* bench = app.add_subcommand("bench", "speed, as ratios within one run");
  bench->add_option("--candidate", measured.candidate, "cpu or cuda")->capture_default_str();
  bench->add_option(
      "--vs", measured.vs,
      "a second candidate in the same run: reference (always beside cpu), or the path "
      "of a library (kvcts_candidate.h), which runs in this process: what might crash "
      "goes through `run` first");
  bench->add_option("--kernels", measured.kernels, "kernels, as patterns separated by commas");
  bench->add_option("--json", measured.json, "write the rows to this file");
  bench->add_option("--cpu-target", measured.target,
                    "avx512, avx2 or baseline: another instruction set than the machine's widest");
  add_threads(bench);
  choose(bench, [&] {
    measured.threads = threads;
    return bench_command(measured);
  });

  adequacy_arguments adequate;
  CLI::App* adequacy =
      app.add_subcommand("adequacy", "which faults of the catalogue the cases catch");
  adequacy->add_option("--vectors", adequate.vectors, "a vector file, not the built-in cases");
  adequacy->add_option("--kernels", adequate.kernels, "kernels, as patterns separated by commas");
  adequacy->add_option("--level", adequate.level, "of the built-in cases")->capture_default_str();
  adequacy->add_option("--without-flag", adequate.without_flag, "leave out cases with this flag");
  adequacy->add_option("--json", adequate.json, "write the trials to this file");
  adequacy->add_flag("--catalogue", adequate.catalogue, "print the faults, try none");
  adequacy->add_flag("--reduce", adequate.reduce,
                     "try every case, and say how few would still catch all");
  add_threads(adequacy);
  add_shard(adequacy, adequate.shard);
  choose(adequacy, [&] {
    adequate.threads = threads;
    return adequacy_command(adequate);
  });

  fuzz_arguments fuzzed;
  CLI::App* fuzz_app = app.add_subcommand("fuzz", "drawn cases; what fails is shrunk and saved");
  fuzz_app->add_option("--kernels", fuzzed.kernels, "kernels, as patterns separated by commas");
  fuzz_app->add_option("--candidate", fuzzed.candidate, candidate_help)->capture_default_str();
  fuzz_app->add_option("--seconds", fuzzed.seconds, "how long")
      ->check(without_sign)
      ->check(CLI::Range(0.001, 1e6));
  fuzz_app->add_option("--cases", fuzzed.cases, "how many (1000 without --seconds)")
      ->check(is_whole)
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1'000'000'000'000}));
  fuzz_app->add_option("--seed", fuzzed.seed, "the same seed draws the same cases")
      ->check(is_whole)
      ->capture_default_str();
  fuzz_app->add_option("--profile", fuzzed.profile, "nvidia or ieee; both without it");
  fuzz_app->add_option("--save", fuzzed.save, "folder for the files of what fails")
      ->capture_default_str();
  fuzz_app->add_option("--json", fuzzed.json, "write the result to this file");
  add_shard(fuzz_app, fuzzed.shard);
  add_timeout(fuzz_app, fuzzed.timeout);
  add_threads(fuzz_app);
  choose(fuzz_app, [&] {
    fuzzed.threads = threads;
    return fuzz_command(fuzzed);
  });

  merge_arguments shards;
  CLI::App* merge = report->add_subcommand("merge", "the shards' reports as one");
  merge->add_option("REPORT", shards.reports, "report folders or files, one a shard")->required();
  merge->add_option("-o,--output", shards.output, "folder of the merged report")->required();
  merge->add_flag("--require-full", shards.require_full, full_help);
  choose(merge, [&] { return merge_command(shards); });

  accept_arguments accept;
  CLI::App* accept_app =
      app.add_subcommand("accept", "the acceptance run: oracle, candidate, recorded evidence");
  accept_app->add_option("--candidate", accept.candidate, candidate_help)->capture_default_str();
  add_timeout(accept_app, accept.timeout);
  add_devices(accept_app, accept.devices);
  accept_app->add_flag("--require-full", accept.require_full, full_verdict_help);
  accept_app->add_option("--report", accept.report, "folder for the reports")
      ->capture_default_str();
  accept_app->add_option("--speed", accept.speed, speed_help);
  accept_app->add_option("--submission", accept.submission,
                         "write the archive to hand over (docs/acceptance.md)");
  accept_app->add_option("--waivers", accept.waivers, "failing cases that somebody answers for");
  accept_app->add_option("--source", accept.source, "a checkout, for its vectors and evidence");
  accept_app->add_flag("--require-evidence", accept.require_evidence,
                       "fail where the recorded GPU evidence is stale or missing");
  add_threads(accept_app);
  choose(accept_app, [&] {
    accept.threads = threads;
    return accept_command(accept);
  });

  std::string before, after;
  CLI::App* report_diff = report->add_subcommand(
      "diff", "what got worse and what better; exit 1 where something is worse");
  report_diff->add_option("OLD", before, "a report.json, or its folder")->required();
  report_diff->add_option("NEW", after, "a report.json, or its folder")->required();
  choose(report_diff, [&] { return report_diff_command(before, after); });
  CLI::App* checked = report->add_subcommand("check", "whether a submission holds, offline");
  bool checked_full = false;
  checked->add_option("FILE", file, "what accept --submission wrote")->required();
  checked->add_flag("--require-full", checked_full, full_verdict_help);
  choose(checked, [&] { return report_check_command(file, checked_full); });
  exhaustive_arguments swept;
  CLI::App* exhaustive = app.add_subcommand(
      "exhaustive", "every input of formats, instructions and blocks, every small shape");
  exhaustive->add_flag("--plan", swept.plan, "only say what there is and how long it takes");
  exhaustive->add_option("--sweeps", swept.sweeps, "sweeps, as patterns separated by commas");
  exhaustive->add_option("--candidate", swept.candidate, candidate_help)->capture_default_str();
  exhaustive->add_option("--profile", swept.profile, "nvidia or ieee")->capture_default_str();
  add_timeout(exhaustive, swept.timeout);
  exhaustive->add_option("--checkpoint", swept.checkpoint,
                         "file of finished pieces, which a later run goes on from");
  add_shard(exhaustive, swept.shard);
  exhaustive->add_option("--report", swept.report, "folder for the reports");
  exhaustive->add_option("--source", swept.source, "a checkout, for its captured results");
  add_threads(exhaustive);
  choose(exhaustive, [&] {
    swept.threads = threads;
    return exhaustive_command(swept);
  });

  // Opens a vector file in this process, which it may crash: see probe_vectors().
  CLI::App* probe = app.add_subcommand("probe", "")->group("");
  probe->add_option("PATH", file)->required();
  choose(probe, [&] { return probe_main(file.c_str()); });

  try {
    refuse_unknown_command(app, argc, argv);
    app.parse(argc, argv);
    return chosen();
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);
    return refuse(std::string(error.what()) + " (see kvcts --help)");
  } catch (const interrupted& by) {
    clear_progress();
    refuse("interrupted: no report is written");
    std::raise(by.signal);  // the guard is gone: the shell sees how it ended
    return 128 + by.signal;
  } catch (const input_error& error) {
    clear_progress();
    return refuse(error.what());
  } catch (const std::bad_alloc&) {
    clear_progress();
    return refuse("memory is used up: free some, or take smaller cases");
  } catch (const std::exception& error) {
    return refuse(std::string("internal error: ") + error.what());
  }
}

}  // namespace kvcts
