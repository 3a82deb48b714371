#include "reports/reports.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "reference/layout/tensor.h"
#include "reports/tests/schema.h"

namespace kvcts {
namespace {

namespace fs = std::filesystem;
using json = nlohmann::json;

const std::string digest(64, 'a');

// One case of every outcome, over two kernels whose cases are mixed, with hostile text.
run_result sample() {
  run_result r;
  r.candidate = "mine <&\"'>";
  r.candidate_version = "1.2";
  r.profile = "nvidia";
  r.level = "acceptance";
  r.verdict = "does not conform";
  r.seed = 0xFFFFFFFFFFFFFFFF;
  r.suite_digest = digest;
  r.environment = {{"host", "h"}, {"compiler", "g++ 12"}};
  r.notices = {"GPU evidence is stale: kernels changed"};
  r.kernels_claimed = 1;
  r.kernels_total = 2;

  case_result passed;
  passed.kernel = "mxfp4_q_quant";
  passed.name = "ties";
  passed.flags = {"TieToEven", "PaddedHeads"};
  passed.provenance = "captured";
  passed.source = "vectors/captured/a.h5";
  passed.bytes_compared = 100;
  passed.output_digests = {{"q_packed", digest}};
  passed.seconds = 0.25;

  case_result failed = passed;
  failed.kernel = "quantize_and_insert_k_cache";
  failed.name = "slots";
  failed.source = "built-in";
  failed.provenance = "derived";
  failed.what = outcome::failed;
  failed.bytes_different = 2;
  failed.places = {{"k_cache", 41237, "token 17 -> slot 145 -> page 2, position 17", "0x7E (2^-1)",
                    "0x7F (2^0)"},
                   {"k_cache", 41238, "a < b & \"c\"", "0x00", "0x01"}};
  failed.replay = "kvcts run --cases 'slots'";
  failed.pictures = {{"k_cache",
                      50000,
                      {{"page 2",
                        37376,
                        {{"value", "values", 0, 36864, 64}, {"scale", "<scales>", 36864, 512, 64}},
                        {{17, 1}, {36900, 3}},
                        2}},
                      "1 more page differs"}};
  r.diagnoses = {
      {failed.kernel, failed.name, 2, {{{"a_fault", "other"}, {"why & how", "<b>"}, false, 0.5}}}};

  case_result skipped = passed;
  skipped.name = "unknown";
  skipped.what = outcome::unsupported;
  skipped.message = "the candidate has no such kernel";

  case_result crashed = failed;
  crashed.name = "crash";
  crashed.what = outcome::crashed;
  crashed.places.clear();
  crashed.bytes_different = 0;
  crashed.message = "signal 11\x01\xFF]]>\nsecond line";

  case_result slow = crashed;
  slow.name = "slow";
  slow.what = outcome::timed_out;
  slow.message = "no answer in 30 s";

  r.accuracy = {{"mxfp4_q_quant", "q_packed", 64, 18.25, 0.125, 0.5}};
  failed.accuracy = {{"", "q_packed", 64, std::numeric_limits<double>::infinity(),
                      std::numeric_limits<double>::infinity(), 0}};
  r.speed = speed_table{
      "cuda", "H200", "", 4.1, {{"mxfp4_q_quant", "T 4096", 1 << 20, 10.5, 0.75, 0.5}, {}}};
  r.sweeps = {
      {"format.e2m1.encode", "f32 to e2m1", 1ULL << 32, 1ULL << 33, 2, 7, "0x1 -> 0x2", 12.5},
      {"shape.fused_layout", "every shape", 8, 8, 0, 0, "", 0.5}};
  r.adequacy = adequacy_score{40, 200, 199, {"mxfp4_q_quant: a_fault"}};

  r.cases = {passed, failed, skipped, crashed, slow};
  return r;
}

std::string text_of(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::string schema() { return text_of(KVCTS_SOURCE_DIR "/docs/report.schema.json"); }

class report_files : public testing::Test {
 protected:
  report_files() {
    std::string name = (fs::temp_directory_path() / "kvcts-reports-XXXXXX").string();
    dir = ::mkdtemp(name.data());
  }
  ~report_files() override { fs::remove_all(dir); }

  fs::path dir;
};

TEST(report_json, holds_every_value_of_the_run) {
  const run_result r = sample();
  const json j = json::parse(report_json(r));
  EXPECT_EQ(j["verdict"], "does not conform");
  EXPECT_EQ(j["candidate"]["name"], "mine <&\"'>");
  EXPECT_EQ(j["candidate"]["version"], "1.2");
  EXPECT_EQ(j["profile"]["name"], "nvidia");
  EXPECT_EQ(j["profile"]["version"], 1);
  EXPECT_EQ(j["level"], "acceptance");
  EXPECT_EQ(j["seed"].get<std::uint64_t>(), 0xFFFFFFFFFFFFFFFF);
  EXPECT_EQ(j["suite_digest"], digest);
  EXPECT_EQ(j["kernels"], json({{"claimed", 1}, {"total", 2}}));
  EXPECT_EQ(j["environment"], json({{"compiler", "g++ 12"}, {"host", "h"}}));
  EXPECT_EQ(j["notices"], json({"GPU evidence is stale: kernels changed"}));
  EXPECT_EQ(j["totals"], json({{"cases", 5},
                               {"passed", 1},
                               {"failed", 1},
                               {"unsupported", 1},
                               {"crashed", 1},
                               {"timed_out", 1},
                               {"bytes_compared", 500},
                               {"bytes_different", 2},
                               {"seconds", 1.25}}));
  const json c = j["cases"][1];
  EXPECT_EQ(c["kernel"], "quantize_and_insert_k_cache");
  EXPECT_EQ(c["name"], "slots");
  EXPECT_EQ(c["flags"], json({"TieToEven", "PaddedHeads"}));
  EXPECT_EQ(c["provenance"], "derived");
  EXPECT_EQ(c["source"], "built-in");
  EXPECT_EQ(c["outcome"], "failed");
  EXPECT_EQ(c["bytes_compared"], 100);
  EXPECT_EQ(c["bytes_different"], 2);
  EXPECT_EQ(c["places"].size(), 2u);
  EXPECT_EQ(c["places"][0], json({{"argument", "k_cache"},
                                  {"byte", 41237},
                                  {"place", "token 17 -> slot 145 -> page 2, position 17"},
                                  {"expected", "0x7E (2^-1)"},
                                  {"got", "0x7F (2^0)"}}));
  EXPECT_EQ(c["replay"], "kvcts run --cases 'slots'");
  EXPECT_EQ(c["output_digests"], json({{"q_packed", digest}}));
  EXPECT_EQ(c["seconds"], 0.25);
  EXPECT_EQ(j["cases"][0]["outcome"], "passed");
  EXPECT_EQ(j["cases"][2]["outcome"], "unsupported");
  EXPECT_EQ(j["cases"][3]["outcome"], "crashed");
  EXPECT_EQ(j["cases"][3]["message"], "signal 11\x01\xEF\xBF\xBD]]>\nsecond line");
  EXPECT_EQ(j["cases"][4]["outcome"], "timed_out");
}

std::string refusal_of(const std::string& document) {
  try {
    parse_report(document, "r.json");
  } catch (const input_error& e) {
    return e.what();
  }
  return "read";
}

TEST(report_json, is_read_back_whole) {
  const std::string text = report_json(sample());
  EXPECT_EQ(report_json(parse_report(text, "r.json")), text);
  // The other forms need no more than that. (XML tells which byte was no UTF-8, so only of what
  // was read.)
  run_result clean = sample();
  for (case_result& c : clean.cases) {
    if (c.what == outcome::crashed) c.message = "signal 11";
  }
  const run_result read = parse_report(report_json(clean), "r.json");
  EXPECT_EQ(report_html(read), report_html(clean));
  EXPECT_EQ(report_markdown(read), report_markdown(clean));
  EXPECT_EQ(report_junit(read), report_junit(clean));
  run_result empty;
  empty.profile_rules = 7;  // of another version of the program
  EXPECT_EQ(report_json(parse_report(report_json(empty), "r.json")), report_json(empty));
  const run_result again = parse_report(text, "r.json");
  EXPECT_EQ(again.cases.at(1).pictures.at(0).strips.at(0).wrong.at(1).first, 36900u);
  EXPECT_EQ(again.speed.value().rows.at(0).target, 0.5);
  EXPECT_EQ(again.speed.value().rows.at(1).target, std::nullopt);
}

TEST(report_json, damaged_ones_are_refused_in_one_line) {
  const std::string good = report_json(sample());
  const std::string hint = "; give the unchanged report.json of a run";
  EXPECT_EQ(refusal_of("<html>"), "r.json: no JSON (byte 1)" + hint);
  EXPECT_EQ(refusal_of("{\"seed\": 1e999}"), "r.json: a number that no report holds" + hint);
  EXPECT_EQ(refusal_of("{}"), "r.json: the document: lacks schema" + hint);
  EXPECT_EQ(refusal_of("[]"), "r.json: the document: must be an object" + hint);
  const auto edited = [&](const char* at, const json& value) {
    json j = json::parse(good);
    j[json::json_pointer(at)] = value;
    return refusal_of(j.dump());
  };
  EXPECT_EQ(edited("/schema", "other"), "r.json: /schema: is not kvcts-report" + hint);
  EXPECT_EQ(edited("/schema_version", 1),
            "r.json: /schema_version: is 1, this program reads 2" + hint);
  EXPECT_EQ(edited("/cases/1/outcome", "fine"),
            "r.json: /cases/1/outcome: is no known outcome" + hint);
  EXPECT_EQ(edited("/cases/0/outcome", "failed"),
            "r.json: /totals/failed: does not agree with the rest" + hint);
  EXPECT_EQ(edited("/cases/1/bytes_different", -1),
            "r.json: /cases/1/bytes_different: must be a whole number, 0 or above" + hint);
  EXPECT_EQ(edited("/cases/1/pictures/0/strips/0/wrong/0/0", 37376),
            "r.json: /cases/1/pictures/0/strips/0/wrong/0: reaches past its strip" + hint);
  const std::string not_known = ": is not known" + hint;
  EXPECT_EQ(edited("/cases/1/provenance", "measured"), "r.json: /cases/1/provenance" + not_known);
  EXPECT_EQ(edited("/cases/1/pictures/0/strips/0/regions/0/kind", "x"),
            "r.json: /cases/1/pictures/0/strips/0/regions/0/kind" + not_known);
  EXPECT_EQ(edited("/cases/0/bytes_different", 1),
            "r.json: /cases/0/bytes_different: must be 0 where a case passed" + hint);
  EXPECT_EQ(edited("/cases/1/places", json(9, json::parse(good)["cases"][1]["places"][0])),
            "r.json: /cases/1/places: has more than 8" + hint);
  EXPECT_EQ(edited("/adequacy/caught", 201), "r.json: /adequacy/caught: is above pairs" + hint);
  EXPECT_EQ(edited("/surprise", 1), "r.json: /surprise: does not agree with the rest" + hint);
  // Cut anywhere it is refused, always in one line.
  for (std::size_t at = 0; at + 2 < good.size(); at += 97) {
    const std::string what = refusal_of(good.substr(0, at));
    EXPECT_EQ(what.rfind("r.json: ", 0), 0u) << at << what;
    EXPECT_EQ(what.find('\n'), std::string::npos) << what;
  }
}

TEST_F(report_files, read_from_a_file) {
  write_reports(dir.string(), sample());
  EXPECT_EQ(report_json(read_report((dir / "report.json").string())), report_json(sample()));
  EXPECT_THROW(read_report((dir / "none.json").string()), input_error);
  EXPECT_THROW(read_report(dir.string()), input_error);
}

TEST(report_json, follows_the_schema) {
  EXPECT_EQ(schema_faults(report_json(sample()), schema()), std::vector<std::string>());
  run_result empty;
  empty.profile = "ieee";
  empty.level = "smoke";
  EXPECT_EQ(schema_faults(report_json(empty), schema()), std::vector<std::string>());
}

TEST(report_json, schema_refuses_other_documents) {
  const json good = json::parse(report_json(sample()));
  const auto faults = [](const json& j) { return schema_faults(j.dump(), schema()); };
  json j = good;
  j.erase("verdict");
  EXPECT_EQ(faults(j), std::vector<std::string>({": lacks verdict"}));
  j = good;
  j["cases"][1]["surprise"] = 1;
  EXPECT_EQ(faults(j), std::vector<std::string>({"/cases/1/surprise: is not in the schema"}));
  j = good;
  j["cases"][1]["outcome"] = "skipped";
  EXPECT_EQ(faults(j).size(), 1u);
  j = good;
  j["totals"]["passed"] = -1;
  EXPECT_EQ(faults(j).size(), 1u);
  j = good;
  j["cases"][0]["output_digests"]["q_packed"] = "AA";
  EXPECT_EQ(faults(j).size(), 1u);
  j = good;
  j["cases"][1]["accuracy"][0]["sqnr_db"] = "exact";
  EXPECT_EQ(faults(j),
            std::vector<std::string>({"/cases/1/accuracy/0/sqnr_db: is no [\"number\",\"null\"]"}));
  j = good;
  j["cases"][1]["pictures"][0]["strips"][0]["wrong"][0] = json::array({1});
  EXPECT_EQ(faults(j).size(), 1u);
  j = good;
  j["cases"][1]["places"] = json::array({1});
  EXPECT_EQ(faults(j), std::vector<std::string>({"/cases/1/places/0: is no object"}));
}

// One failure, waived.
run_result waived() {
  run_result r = sample();
  r.cases.resize(2);
  r.sweeps.clear();
  r.verdict = "conforms with waivers (1): 2 cases";
  r.notices = {
      "waived: quantize_and_insert_k_cache/sl*: 1 case fails: known (me, until 2027-01-01)",
      "GPU evidence is verified: 3 cases"};
  return r;
}

TEST_F(report_files, a_verdict_against_its_cases_is_refused) {
  const auto what = [&](const run_result& r) {
    std::ofstream(dir / "r.json", std::ios::binary) << report_json(r);
    try {
      read_report((dir / "r.json").string());
    } catch (const input_error& e) {
      return std::string(e.what());
    }
    return std::string("read");
  };
  const std::string refused = (dir / "r.json").string() +
                              ": /verdict: does not agree with the cases; give the unchanged "
                              "report.json of a run";
  run_result r = waived();
  EXPECT_EQ(what(r), "read");
  r.verdict = "conforms: 2 cases";
  EXPECT_EQ(what(r), refused);
  r = waived();
  r.notices.clear();
  EXPECT_EQ(what(r), refused);
  r = waived();
  r.cases[1].bytes_different = 0;  // nothing was written: no waiver covers that
  EXPECT_EQ(what(r), refused);
  r.verdict = "does not conform";
  EXPECT_EQ(what(r), "read");
}

TEST(report_forms, waived_failures_are_marked) {
  const run_result r = waived();
  const std::string html = report_html(r), md = report_markdown(r), xml = report_junit(r);
  const auto has = [](const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
  };
  EXPECT_TRUE(has(html, "<header class=\"verdict limited\">"));
  EXPECT_TRUE(has(html, "aria-hidden=\"true\">!</span> conforms with waivers"));
  EXPECT_TRUE(has(html, "<dt>Failed</dt><dd>1 (1 waived)</dd>"));
  EXPECT_TRUE(has(html, "<td class=\"off\">! differs, waived</td>"));
  EXPECT_TRUE(has(html, "data-k=\"1\">! 1/1</td>"));
  EXPECT_TRUE(has(html, "<span class=\"word off\">! failed, waived</span>"));
  EXPECT_TRUE(has(html, "\"timed out\",\"failed, waived\"]"));
  EXPECT_EQ(md.rfind("## ⚠️ KVCTS: conforms with waivers", 0), 0u) << md;
  EXPECT_TRUE(has(md, "<code>quantize_and_insert_k_cache</code> | ⚠️ differs, waived |")) << md;
  EXPECT_TRUE(has(md, "<summary>⚠️ waived: ")) << md;
  EXPECT_TRUE(has(xml, "message=\"waived: 2 of 100 bytes differ; first")) << xml;
  EXPECT_TRUE(has(html, "<p class=\"notice neutral\"><strong>Note:</strong> GPU evidence is"));
  EXPECT_TRUE(has(html, "<p class=\"notice\"><strong>Note:</strong> waived: "));
  // Another failure beside it is not.
  run_result worse = r;
  worse.cases.push_back(r.cases[1]);
  worse.cases.back().name = "other";
  worse.verdict = "does not conform: 1 of 2 cases differ (1 more are waived)";
  EXPECT_TRUE(has(report_html(worse), "<header class=\"verdict bad\">"));
  EXPECT_TRUE(has(report_html(worse), "<td class=\"bad\">✖ differs</td>"));
  EXPECT_TRUE(has(report_html(worse), "<dd>2 (1 waived)</dd>"));
  EXPECT_TRUE(has(report_html(worse), "<span class=\"word bad\">✖ failed</span>"));
}

TEST(report_forms, comparisons_name_their_sides) {
  run_result r = sample();
  r.cases.resize(2);
  r.level = "file";
  r.verdict = "different: 1 of 2 cases differ (2 of 200 bytes)";
  r.cases[1].replay = "kvcts compare 'a.h5' 'b.h5'";
  const std::string html = report_html(r), md = report_markdown(r), xml = report_junit(r);
  EXPECT_NE(html.find("<th scope=\"col\">A</th><th scope=\"col\">B</th>"), std::string::npos);
  EXPECT_NE(html.find("<h3>Run it again</h3>"), std::string::npos);
  EXPECT_NE(html.find("✔ equal</td>"), std::string::npos);
  EXPECT_NE(md.find("| argument | place | A | B |"), std::string::npos) << md;
  EXPECT_NE(md.find("Again: <code>kvcts compare"), std::string::npos) << md;
  EXPECT_NE(xml.find(": A 0x7E (2^-1), B 0x7F (2^0)"), std::string::npos) << xml;
  for (const std::string& text : {html, md, xml}) {
    for (const char* wrong :
         {"<th scope=\"col\">Expected</th>", "conforms", "expected 0x", "Expected bytes"}) {
      EXPECT_EQ(text.find(wrong), std::string::npos) << wrong;
    }
  }
  // `verify` has an expected side, and no command for one case either.
  r.verdict = "does not conform: 1 of 2 cases differ (2 bytes)";
  EXPECT_NE(report_html(r).find("<th scope=\"col\">Expected</th>"), std::string::npos);
  EXPECT_NE(report_markdown(r).find("Again: "), std::string::npos);
}

TEST(report_forms, what_wrote_nothing_fails) {
  run_result r = sample();
  r.cases.erase(r.cases.begin() + 1);
  EXPECT_NE(report_html(r).find("<td class=\"bad\">✖ fails</td>"), std::string::npos);
  EXPECT_NE(report_markdown(r).find("| ❌ fails |"), std::string::npos);
}

TEST(report_junit, one_suite_a_kernel) {
  const std::string xml = report_junit(sample());
  EXPECT_NE(xml.find("<testsuite name=\"mxfp4_q_quant\" tests=\"2\" failures=\"0\" errors=\"0\" "
                     "skipped=\"1\" time=\"0.500000\">"),
            std::string::npos)
      << xml;
  EXPECT_NE(xml.find("<testsuite name=\"quantize_and_insert_k_cache\" tests=\"3\" failures=\"1\" "
                     "errors=\"2\" skipped=\"0\" time=\"0.750000\">"),
            std::string::npos)
      << xml;
  EXPECT_NE(xml.find("<testcase classname=\"mxfp4_q_quant.a.h5\" name=\"ties\" "
                     "time=\"0.250000\"/>"),
            std::string::npos)
      << xml;
}

TEST(report_junit, failure_names_its_places) {
  const std::string xml = report_junit(sample());
  EXPECT_NE(
      xml.find("<failure type=\"failed\" message=\"2 of 100 bytes differ; first: k_cache: byte "
               "41237: token 17 -&gt; slot 145 -&gt; page 2, position 17: expected 0x7E (2^-1), "
               "got 0x7F (2^0)\">"),
      std::string::npos)
      << xml;
  EXPECT_NE(xml.find("k_cache: byte 41238: a &lt; b &amp; &quot;c&quot;: expected 0x00, got 0x01"),
            std::string::npos);
  EXPECT_NE(xml.find("replay: kvcts run --cases 'slots'"), std::string::npos);
}

TEST(report_junit, other_outcomes_and_characters_that_xml_forbids) {
  const std::string xml = report_junit(sample());
  EXPECT_NE(xml.find("<skipped message=\"the candidate has no such kernel\"/>"), std::string::npos);
  EXPECT_NE(xml.find("<error type=\"crashed\" message=\"signal 11\xEF\xBF\xBD\xEF\xBF\xBD]]&gt;"
                     "&#10;second line\">"),
            std::string::npos)
      << xml;
  EXPECT_NE(xml.find("<error type=\"timed_out\" message=\"no answer in 30 s\">"),
            std::string::npos);
  run_result r;
  // Good: two, three and four bytes. Bad: overlong, surrogate, U+FFFF, past the last, cut short.
  r.candidate =
      "\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80|\xC0\x80|\xED\xA0\x80|\xEF\xBF\xBF|"
      "\xF4\x90\x80\x80|\xE2\x82";
  const std::string bad = "\xEF\xBF\xBD";
  EXPECT_NE(report_junit(r).find("\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80|" + bad + bad + "|" + bad +
                                 bad + bad + "|" + bad + bad + bad + "|" + bad + bad + bad + bad +
                                 "|" + bad + bad + "\""),
            std::string::npos)
      << report_junit(r);
}

TEST_F(report_files, written_whole_into_a_new_directory) {
  const fs::path target = dir / "new" / "deeper";
  write_reports(target.string(), sample());
  EXPECT_EQ(text_of(target / "report.json"), report_json(sample()));
  EXPECT_EQ(text_of(target / "junit.xml"), report_junit(sample()));
  EXPECT_EQ(text_of(target / "report.html"), report_html(sample()));
  EXPECT_EQ(text_of(target / "report.md"), report_markdown(sample()));
  EXPECT_EQ(std::distance(fs::directory_iterator(target), {}), 4);  // no temporaries
  run_result other = sample();
  other.verdict = "conforms";
  write_reports(target.string(), other);
  EXPECT_EQ(text_of(target / "report.json"), report_json(other));
}

#ifdef KVCTS_PYTHON
TEST_F(report_files, python_reads_them) {
  write_reports(dir.string(), sample());
  std::string command = std::string(KVCTS_PYTHON " " KVCTS_SOURCE_DIR) +
                        "/reports/tests/check_report.py " + dir.string();
#ifdef KVCTS_PYTHON_JSONSCHEMA
  command += " " KVCTS_SOURCE_DIR "/docs/report.schema.json";
#endif
  EXPECT_EQ(std::system(command.c_str()), 0) << command;
}
#endif

#ifdef KVCTS_XMLLINT
bool follows_junit_schema(const fs::path& file) {
  const std::string command = std::string(KVCTS_XMLLINT " --nonet --noout --schema ") +
                              KVCTS_SOURCE_DIR "/docs/junit.xsd " + file.string() + " 2>/dev/null";
  return std::system(command.c_str()) == 0;
}

TEST_F(report_files, junit_follows_its_schema) {
  const fs::path file = dir / "junit.xml";
  const auto holds = [&](const std::string& text) {
    std::ofstream(file, std::ios::binary) << text;
    return follows_junit_schema(file);
  };
  const std::string good = report_junit(sample());
  EXPECT_TRUE(holds(good));
  run_result empty;
  EXPECT_TRUE(holds(report_junit(empty)));
  for (const auto& [from, to] :
       {std::pair("errors=", "problems="), std::pair("<skipped ", "<missed "),
        std::pair("tests=\"2\"", "tests=\"-2\""), std::pair("type=\"crashed\"", "type=\"odd\""),
        std::pair("classname=\"mxfp4_q_quant.a.h5\"", "")}) {
    std::string bad = good;
    ASSERT_NE(bad.find(from), std::string::npos) << from;
    bad.replace(bad.find(from), std::string(from).size(), to);
    EXPECT_FALSE(holds(bad)) << from;
  }
}
#endif

// As many cases as a whole acceptance run, under every kind of name; each `nth` fails.
run_result large(std::size_t nth) {
  run_result r = sample();
  const case_result failed = r.cases[1], passed = r.cases[0];
  r.cases.clear();
  r.diagnoses.clear();
  std::size_t pictures = 0;
  for (std::size_t i = 0; i < 5200; ++i) {
    case_result c = i % nth == nth - 1 ? failed : passed;
    c.kernel = "kernel_with_a_long_name_" + std::to_string(i % 17);
    c.name = "t4096_h64_p128_mixed_layout_gap1168_rows8_guard_warm_" + std::to_string(i);
    c.flags = {"Flag" + std::to_string(i % 40), "Flag" + std::to_string(40 + i % 23),
               "Flag" + std::to_string(70 + i % 30)};
    if (c.what == outcome::failed) {
      while (c.places.size() < 8) c.places.push_back(c.places.back());
      for (difference& d : c.places) d.place += std::string(100, 'x');
      if (++pictures > 40) {
        c.pictures.clear();
      } else {
        picture_strip strip = c.pictures[0].strips[0];
        strip.wrong.clear();
        for (std::uint64_t run = 0; run < 100; ++run) strip.wrong.push_back({run * 373, 1});
        c.pictures[0].strips.assign(8, strip);
      }
    }
    r.cases.push_back(c);
  }
  return r;
}

TEST(report_html, stays_below_two_mebibytes) {
  EXPECT_LT(report_html(large(6000)).size(), std::size_t{2} << 20);
  EXPECT_LT(report_html(large(1)).size(), std::size_t{2} << 20);
  for (const char worst : {'<', '"', '\x01', '\n', '\xFF'}) {
    run_result r = large(1);
    for (case_result& c : r.cases) {
      c.bytes_different = 0;
      c.message = std::string(1000, worst);
    }
    EXPECT_LT(report_html(r).size(), std::size_t{2} << 20) << static_cast<int>(worst);
  }
}

// A message is cut between characters.
TEST(report_html, cuts_no_character) {
  run_result r = sample();
  r.cases.resize(1);
  r.cases[0].what = outcome::unsupported;
  r.cases[0].message = "x";
  for (int i = 0; i < 200; ++i) r.cases[0].message += "é";
  const std::string html = report_html(r);
  EXPECT_EQ(html.find("\xEF\xBF\xBD"), std::string::npos);
  EXPECT_NE(html.find("éé\"]"), std::string::npos);
}

TEST(report_html, is_read_without_scripts) {
  run_result r = sample();
  r.verdict = "does not conform: 3 of 5";
  const std::string html = report_html(r);
  const std::string page = html.substr(0, html.find("<script"));
  const auto has = [&](const std::string& text) { return page.find(text) != std::string::npos; };
  EXPECT_TRUE(has("✖</span> does not conform: 3 of 5</h1>"));
  EXPECT_LT(page.find("does not conform: 3 of 5</h1>"), page.find("<nav"));
  EXPECT_TRUE(has("data-f=\"0\" data-k=\"1\">✖ 3/3</td>"));
  EXPECT_TRUE(has("token 17 -&gt; slot 145 -&gt; page 2, position 17"));
  EXPECT_TRUE(has("<code>0x7E (2^-1)</code>"));
  EXPECT_TRUE(
      has("a_fault with other is the nearest, but agrees in 50% of the bytes that it or the "
          "candidate changes: why &amp; how; &lt;b&gt;"));
  EXPECT_TRUE(has("<code>kvcts run --cases 'slots'</code>"));
  EXPECT_TRUE(has("<dt>Captured on hardware</dt><dd>1 case</dd>"));
  EXPECT_TRUE(has("derived by rule"));
  EXPECT_TRUE(has("Map of k_cache (50,000 bytes)"));
  EXPECT_TRUE(has("Not drawn: 1 more page differs."));
  EXPECT_TRUE(has("<td class=\"number\">18.25</td>"));
  EXPECT_TRUE(has("<strong>199 of 200</strong>"));
  EXPECT_TRUE(has("GPU evidence is stale: kernels changed"));
  EXPECT_TRUE(has(digest));
  EXPECT_FALSE(has("{{"));
  // A run that passes says so.
  r.cases.resize(1);
  r.sweeps.clear();
  r.verdict = "conforms";
  EXPECT_NE(report_html(r).find("<header class=\"verdict good\">"), std::string::npos);
  r.verdict = "does not conform: the GPU evidence is stale";
  EXPECT_NE(report_html(r).find("<header class=\"verdict bad\">"), std::string::npos);
}

// 37,376 bytes are 1,000 units: byte 17 lies at 0.5, byte 36,900 at 987.3.
TEST(report_html, draws_to_scale) {
  const std::string html = report_html(sample());
  EXPECT_NE(html.find("<rect class=\"value\" x=\"0\" y=\"10\" width=\"986.3\""), std::string::npos);
  EXPECT_NE(html.find("<rect class=\"scale\" x=\"986.3\" y=\"10\" width=\"13.7\""),
            std::string::npos);
  EXPECT_NE(html.find("d=\"M0.5 0h2.5v38h-2.5zM987.3 0h2.5v38h-2.5z\""), std::string::npos);
}

TEST(report_markdown, fits_a_comment) {
  EXPECT_LT(report_markdown(large(1)).size(), 60'000u);
  run_result r = sample();
  r.candidate = std::string(100'000, '|');
  for (case_result& c : r.cases) c.message += std::string(100'000, '@');
  EXPECT_LT(report_markdown(r).size(), 60'000u);
}

TEST(report_markdown, tells_what_failed) {
  run_result r = sample();
  r.candidate = "@team|a`b#1 [x](y) <img>";
  const std::string text = report_markdown(r);
  EXPECT_EQ(
      text.rfind("## ❌ KVCTS: does not conform\n\nCandidate <code>&#64;team&#124;a&#96;b&#35;1 "
                 "&#91;x&#93;(y) &lt;img&gt;</code> 1.2",
                 0),
      0u)
      << text;
  EXPECT_NE(text.find("| <code>mxfp4_q_quant</code> | ✅ conforms | 1 | 0 | 0 | 1 | 200 |"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("page 2, position 17 | <code>0x7E (2^-1)</code>"), std::string::npos) << text;
  EXPECT_NE(text.find("- diagnosis of quantize"), std::string::npos) << text;
  EXPECT_NE(text.find("signal 11\xEF\xBF\xBD\xEF\xBF\xBD&#93;&#93;&gt; second line"),
            std::string::npos)
      << text;
}

TEST_F(report_files, opened_in_a_browser) {
#ifdef KVCTS_CHROMIUM
  run_result bad = sample();
  const std::string hostile = "<img src=x onerror=pwned=1></script><script>pwned=1</script>";
  bad.candidate += hostile;
  bad.verdict += " {{data}} " + hostile;
  bad.notices.push_back(hostile);
  bad.environment[hostile] = hostile;
  for (case_result& c : bad.cases) {
    c.message += hostile;
    c.source += hostile;
    c.flags.push_back(hostile);
  }
  bad.cases[1].name += hostile;
  bad.cases[1].replay += hostile;
  bad.cases[1].places[0].place += hostile;
  bad.cases[1].pictures[0].strips[0].name += hostile;
  bad.cases[1].pictures[0].strips[0].regions[0].name = "a name with no end " + std::string(90, 'x');
  run_result good = large(6000);
  good.sweeps.clear();
  good.verdict = "conforms: 5200 cases, 520,000 bytes compared, 0 differ";
  std::ofstream(dir / "good.html", std::ios::binary) << report_html(good);
  std::ofstream(dir / "bad.html", std::ios::binary) << report_html(bad);
  run_result both = waived();
  both.cases.push_back(both.cases[1]);
  both.cases.back().name = "other";
  both.verdict = "does not conform: 1 of 3 cases differ (1 more are waived)";
  std::ofstream(dir / "waived.html", std::ios::binary) << report_html(both);
  const std::string command = std::string(KVCTS_PYTHON " " KVCTS_SOURCE_DIR) +
                              "/reports/tests/browser_test.py " KVCTS_CHROMIUM
                              " " KVCTS_CHROMEDRIVER " " +
                              (dir / "good.html").string() + " " + (dir / "bad.html").string() +
                              " " + (dir / "waived.html").string();
  EXPECT_EQ(std::system(command.c_str()), 0) << command;
#else
  GTEST_SKIP() << "no chromium and chromium-driver here: report.html is not opened in a browser";
#endif
}

std::string refusal(const std::string& target) {
  try {
    write_reports(target, sample());
  } catch (const input_error& e) {
    return e.what();
  }
  return "written";
}

TEST_F(report_files, a_directory_that_cannot_be_is_refused) {
  const fs::path file = dir / "file";
  std::ofstream(file) << "text";
  const std::string hint = "; give a directory that can be written";
  EXPECT_EQ(refusal(file.string()),
            "report directory: " + file.string() + " cannot be created (Not a directory)" + hint);
  EXPECT_EQ(refusal((file / "below").string()), "report directory: " + (file / "below").string() +
                                                    " cannot be created (Not a directory)" + hint);
  EXPECT_EQ(refusal(""), "report directory: the name is empty" + hint);
  EXPECT_EQ(text_of(file), "text");
}

TEST_F(report_files, nothing_is_written_where_one_file_cannot_be) {
  fs::create_directories(dir / "junit.xml");
  EXPECT_EQ(refusal(dir.string()), "report directory: " + (dir / "junit.xml").string() +
                                       " is a directory; give a directory that can be written");
  EXPECT_EQ(std::distance(fs::directory_iterator(dir), {}), 1);
}

TEST_F(report_files, a_directory_without_write_permission_is_refused) {
  // Root writes anywhere but in /proc.
  const std::string locked = ::geteuid() == 0 ? "/proc" : (dir / "locked").string();
  if (::geteuid() != 0) {
    fs::create_directory(locked);
    fs::permissions(locked, fs::perms::owner_read | fs::perms::owner_exec);
  }
  const std::string why = std::strerror(::geteuid() == 0 ? ENOENT : EACCES);
  EXPECT_EQ(refusal(locked), "report directory: " + locked + " cannot be written (" + why +
                                 "); give a directory that can be written");
}

}  // namespace
}  // namespace kvcts
