// Submissions: what holds, and that nothing else does.
#include "conformance/submission/submission.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <iterator>
#include <set>

#include "conformance/submission/parts.h"
#include "conformance/tests/tools.h"

namespace kvcts {
namespace {

using testing_tools::program_result;
using testing_tools::run_program;
using testing_tools::scratch;

constexpr const char* day = "2027-01-15";
constexpr std::size_t block = 512;

// A suite small enough to run again and again: two kernels, and a candidate of one of them.
std::vector<planned_case> small_plan() {
  std::vector<planned_case> plan;
  for (const char* kernel : {"mxfp4_q_quant", "combine_topk_swa_indices"}) {
    std::vector<planned_case> all =
        plan_built_in(kernel_filter(kernel), level::smoke, 1, profile::nvidia);
    all.resize(5);
    std::move(all.begin(), all.end(), std::back_inserter(plan));
  }
  return plan;
}

run_options small_options() {
  run_options options;
  options.up_to = level::smoke;
  options.threads = 1;
  options.diagnose_seconds = 0;
  return options;
}

// The reference; with `wrong`, the bytes of another rule; with `partial`, without one kernel.
class player : public candidate {
 public:
  explicit player(bool wrong = false, bool partial = false)
      : inner_(wrong
                   ? candidate_of_rules("player", [](profile) { return rules_for(profile::ieee); })
                   : make_candidate("reference", 1)),
        wrong_(wrong),
        partial_(partial) {}
  std::string name() const override { return "player"; }
  std::string version() const override { return wrong_ ? "wrong" : "right"; }
  bool supports(std::string_view kernel) const override {
    return inner_->supports(kernel) && !(partial_ && kernel == "mxfp4_q_quant");
  }
  void run(const call& c, profile p) override {
    inner_->run(c, p);
    if (!wrong_ || c.kernel != "combine_topk_swa_indices") return;
    // One byte of the first output, which the contract says is written.
    for (const auto& [name, tensor] : c.tensors) {
      if (name == "combined_lens") const_cast<std::byte*>(tensor.storage)[0] ^= std::byte{1};
    }
  }

 private:
  std::unique_ptr<candidate> inner_;
  bool wrong_, partial_;
};

// Stands for what the program prints.
std::string printed(const run_result& result) {
  return "kernels: 2\nverdict: " + result.verdict + "\n";
}

struct made_submission {
  run_result measured, reduced;
  suite_manifest manifest;
  std::vector<waiver> waivers;
  std::string digest;  // of the manifest

  std::vector<archive_member> members() const {
    return submission_of(measured, reduced, manifest, waivers, printed(reduced));
  }
  submission_check check(const std::string& on = day) const {
    return check_submission(write_archive(members()), on, printed, digest);
  }
};

made_submission submit(candidate& subject, std::vector<waiver> waivers = {}) {
  const std::vector<planned_case> plan = small_plan();
  made_submission made;
  made.measured = run_suite(plan, subject, small_options());
  apply_waivers(waivers, false, made.measured);
  made.reduced = reproducible(made.measured, subject);
  made.manifest = manifest_of(plan, small_options());
  made.waivers = std::move(waivers);
  made.digest = digest_of(made.manifest);
  return made;
}

const made_submission& good() {
  static const made_submission made = [] {
    player subject;
    return submit(subject);
  }();
  return made;
}
const std::string& good_archive() {
  static const std::string bytes = write_archive(good().members());
  return bytes;
}

void expect_refused(const submission_check& check, const std::string& words) {
  EXPECT_FALSE(check.holds) << words;
  EXPECT_FALSE(check.conforms());
  EXPECT_NE(check.problem.find(words), std::string::npos) << words << "\n" << check.problem;
  EXPECT_EQ(check.problem.find('\n'), std::string::npos) << check.problem;
}
void expect_refused(const std::string& archive, const std::string& words) {
  expect_refused(check_submission(archive, day, printed, good().digest), words);
}
void expect_members_refused(std::vector<archive_member> members, const std::string& words) {
  expect_refused(write_archive(with_sums(std::move(members))), words);
}

archive_member& named(std::vector<archive_member>& members, std::string_view name) {
  return *std::find_if(members.begin(), members.end(),
                       [&](const archive_member& m) { return m.name == name; });
}

// Offsets of the members' headers.
std::vector<std::size_t> headers_of(const std::string& archive) {
  std::vector<std::size_t> at;
  std::size_t next = 0;
  for (const archive_member& m : read_archive(archive)) {
    at.push_back(next);
    next += block + (m.content.size() + block - 1) / block * block;
  }
  return at;
}

// A header field with other text, and the checksum made right again.
std::string with_field(std::string archive, std::size_t header, std::size_t field,
                       const std::string& text) {
  archive.replace(header + field, text.size(), text);
  archive.replace(header + 148, 8, "        ");
  unsigned sum = 0;
  for (std::size_t i = 0; i < block; ++i) {
    sum += static_cast<unsigned char>(archive[header + i]);
  }
  char digits[8];
  std::snprintf(digits, sizeof digits, "%06o", sum);
  archive.replace(header + 148, 7, std::string(digits, 7));
  return archive;
}

std::string text_of_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

TEST(submission, of_a_candidate_that_conforms_holds) {
  const submission_check check = good().check();
  EXPECT_TRUE(check.holds) << check.problem;
  EXPECT_TRUE(check.conforms());
  EXPECT_EQ(check.verdict.rfind("conforms: 10 cases", 0), 0u) << check.verdict;
  EXPECT_EQ(check.cases, 10u);
  EXPECT_EQ(check.members, good().members().size());
}

TEST(submission, of_a_part_says_so) {
  player subject(false, true);
  const made_submission made = submit(subject);
  const submission_check check = made.check();
  EXPECT_TRUE(check.conforms()) << check.problem;
  EXPECT_EQ(check.verdict.rfind("conforms (1 of 2 claimed): 5 cases", 0), 0u) << check.verdict;
  // What a candidate claims does not change the suite.
  EXPECT_EQ(made.reduced.suite_digest, good().reduced.suite_digest);
}

TEST(submission, of_a_candidate_that_fails_holds_and_does_not_conform) {
  player subject(true);
  const submission_check check = submit(subject).check();
  EXPECT_TRUE(check.holds) << check.problem;
  EXPECT_FALSE(check.conforms());
}

TEST(submission, is_the_same_twice_but_for_one_member) {
  for (const bool wrong : {false, true}) {
    player first(wrong), second(wrong);
    const made_submission a = submit(first);
    made_submission b = submit(second);
    b.measured.environment["time"] = "2031-01-01T00:00:00Z";
    b.measured.environment["host"] = "another";
    const std::vector<archive_member> here = a.members(), there = b.members();
    ASSERT_EQ(here.size(), there.size());
    std::set<std::string> differ;
    for (std::size_t i = 0; i < here.size(); ++i) {
      EXPECT_EQ(here[i].name, there[i].name);
      if (here[i].content != there[i].content) differ.insert(here[i].name);
    }
    EXPECT_EQ(differ, (std::set<std::string>{"SHA256SUMS", "environment.json"}));
    EXPECT_EQ(reproducible_digest(here), reproducible_digest(there));
    EXPECT_EQ(a.check().members_digest, b.check().members_digest);
  }
}

TEST(submission, holds_times_and_host_in_one_member) {
  made_submission made = good();
  made.measured.environment["host"] = "host-of-the-test";
  made.measured.environment["time"] = "2031-02-03T04:05:06Z";
  player subject;
  made.reduced = reproducible(made.measured, subject);
  for (const archive_member& m : made.members()) {
    const bool own = m.name == "environment.json";
    EXPECT_EQ(m.content.find("host-of-the-test") != std::string::npos, own) << m.name;
    EXPECT_EQ(m.content.find("2031-02-03") != std::string::npos, own) << m.name;
    EXPECT_EQ(m.content.find(KVCTS_SOURCE_DIR), std::string::npos) << m.name;
  }
}

class library_player : public player {
 public:
  library_player() : player(true) {}
  std::string argument() const override { return "/home/someone/build/lib.so"; }
  std::map<std::string, std::string> about() const override {
    return {{"candidate library", argument()},
            {"candidate library sha256", std::string(64, 'a')},
            {"candidate vendor", "Someone"}};
  }
};

TEST(submission, names_a_library_without_its_folder) {
  library_player subject;
  made_submission made = submit(subject);
  EXPECT_TRUE(made.check().holds) << made.check().problem;
  std::vector<archive_member> members = made.members();
  for (const archive_member& m : members) {
    EXPECT_EQ(m.content.find("/home/someone") != std::string::npos, m.name == "environment.json")
        << m.name;
  }
  EXPECT_NE(named(members, "report.json").content.find("--candidate ./lib.so "), std::string::npos);
  const std::string& about = named(members, "candidate.json").content;
  for (const char* words : {"\"kind\": \"library\"", "\"file\": \"lib.so\"",
                            "\"vendor\": \"Someone\"", "\"sha256\": \"aaaaaaaa"}) {
    EXPECT_NE(about.find(words), std::string::npos) << words << "\n" << about;
  }
}

TEST(submission, with_one_changed_byte_in_any_member_is_refused) {
  const std::string& archive = good_archive();
  const std::vector<std::size_t> headers = headers_of(archive);
  const std::vector<archive_member> members = read_archive(archive);
  ASSERT_EQ(members.size(), headers.size());
  for (std::size_t i = 0; i < members.size(); ++i) {
    const std::size_t size = members[i].content.size();
    for (const std::size_t at :
         {std::size_t{0}, std::size_t{1}, size / 3, size / 2, size - 2, size - 1}) {
      for (const char bit : {1, 0x20}) {
        std::string changed = archive;
        changed[headers[i] + block + at] ^= bit;
        expect_refused(changed, "");
        if (members[i].name != parts::sums_name) expect_refused(changed, members[i].name);
      }
    }
  }
}

TEST(submission, with_any_byte_of_a_header_or_of_padding_changed_is_refused) {
  const std::string& archive = good_archive();
  const std::vector<archive_member> members = read_archive(archive);
  std::size_t next = 0;
  const auto refuse = [&](std::size_t at) {
    std::string changed = archive;
    changed[at] ^= 1;
    EXPECT_THROW(read_archive(changed), input_error) << at;
  };
  std::set<std::size_t> names;
  for (const archive_member& m : members) {
    // A name may become another plain one: check_submission knows the names.
    for (std::size_t i = m.name.size(); i < block; ++i) refuse(next + i);
    for (std::size_t i = 0; i < m.name.size(); ++i) {
      std::string changed = archive;
      changed[next + i] ^= 1;
      expect_refused(changed, "");
    }
    const std::size_t end = block + (m.content.size() + block - 1) / block * block;
    for (std::size_t i = block + m.content.size(); i < end; ++i) refuse(next + i);
    next += end;
  }
  for (; next < archive.size(); ++next) refuse(next);
}

TEST(submission, without_a_member_is_refused) {
  const std::vector<archive_member> members = good().members();
  for (std::size_t i = 0; i < members.size(); ++i) {
    std::vector<archive_member> fewer = members;
    fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(i));
    expect_refused(write_archive(fewer), "member " + members[i].name + " is missing");
    if (members[i].name != parts::sums_name) {
      expect_members_refused(fewer, "member " + members[i].name + " is missing");
    }
  }
}

TEST(submission, with_a_member_too_many_is_refused) {
  std::vector<archive_member> more = good().members();
  more.push_back({"more.txt", "more\n"});
  expect_members_refused(more, "member more.txt does not belong");
  std::vector<archive_member> longer = good().members();
  named(longer, parts::sums_name).content += std::string(64, '0') + "  more.txt\n";
  expect_refused(write_archive(longer), "it lists more than the members");
}

TEST(submission, in_another_order_or_with_a_member_twice_is_refused) {
  const std::string& archive = good_archive();
  const std::vector<std::size_t> headers = headers_of(archive);
  const std::size_t a = headers[1], b = headers[2], c = headers[3];
  const std::string first = archive.substr(a, b - a), second = archive.substr(b, c - b);
  const std::string before = archive.substr(0, a), behind = archive.substr(c);
  expect_refused(before + second + first + behind, "out of order");
  expect_refused(before + first + first + second + behind, "there twice");
  expect_refused(before + first + second + first + behind, "out of order");
}

TEST(submission, that_is_cut_off_or_too_long_is_refused) {
  const std::string& archive = good_archive();
  for (std::size_t bytes = 0; bytes < archive.size(); bytes += bytes % block == 1 ? 255 : 1) {
    EXPECT_THROW(read_archive(archive.substr(0, bytes)), input_error) << bytes;
  }
  expect_refused(archive.substr(0, archive.size() - 1), "end");
  expect_refused(archive + std::string(block, '\0'), "end");
  expect_refused(archive + "x", "end");
}

TEST(submission, with_hostile_names_and_sizes_is_refused) {
  const std::string& archive = good_archive();
  const std::size_t header = headers_of(archive)[1];
  for (const std::string& name :
       {std::string("../../etc/passwd"), std::string("/etc/passwd"), std::string("a/b"),
        std::string(".hidden"), std::string("..", 3), std::string("a\nb"), std::string("\0b", 2),
        std::string("a b"), std::string("\x1b[2J"), std::string("c:\\x"), std::string(100, 'a')}) {
    std::string padded = name;
    padded.resize(100, '\0');
    expect_refused(with_field(archive, header, 0, padded), "member");
  }
  for (const char* size : {"77777777777", "37777777777", "17777777777", "00000000000",
                           "-0000000001", "           ", "0000000010x"}) {
    expect_refused(with_field(archive, header, 124, size), "");
  }
  // Sizes of more than 8 GiB in base 256, as GNU tar has them.
  expect_refused(
      with_field(archive, header, 124, "\x80\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"),
      "octal");
  for (const char type : {'1', '2', '3', '5', 'L', 'x', 'g', '\0'}) {  // links, folders, ...
    expect_refused(with_field(archive, header, 156, std::string(1, type)), "header");
  }
  expect_refused(with_field(archive, header, 345, "prefix"), "header");
  EXPECT_THROW(write_archive({{"../x", ""}}), input_error);
  EXPECT_THROW(write_archive({{"a", ""}, {"a", ""}}), input_error);
}

TEST(submission, that_another_tar_reads) {
  const scratch folder;
  std::ofstream(folder.path("s.tar"), std::ios::binary) << good_archive();
  const std::string command = "cd '" + folder.path("") +
                              "' && mkdir x && tar -xf s.tar -C x && cd x && "
                              "sha256sum --quiet -c SHA256SUMS && ls | wc -l >../count";
  ASSERT_EQ(std::system(command.c_str()), 0);
  EXPECT_EQ(std::stoul(text_of_file(folder.path("count"))), good().members().size());
}

// Whoever edits a member can make SHA256SUMS right again.
TEST(submission, with_an_edited_member_is_refused_though_the_sums_are_right) {
  struct edit {
    const char *member, *from, *to, *words;
  };
  for (const edit& e : {
           edit{"report.json", "\"verdict\": \"conforms", "\"verdict\": \"conforms!", "junit.xml"},
           edit{"report.json", "\"passed\": 10", "\"passed\": 11", "report.json"},
           edit{"report.json", "\"schema\"", " \"schema\"", "report.json"},
           edit{"report.json", "{", "", "report.json"},
           edit{"junit.xml", "tests=\"10\"", "tests=\"11\"", "junit.xml"},
           edit{"manifest.json", "\"schema\"", " \"schema\"", "not as the suite writes it"},
           edit{"manifest.json", "\"level\": \"smoke\"", "\"level\": \"other\"", "manifest.json"},
           edit{"manifest.json", "mxfp4_q_quant", "mxfp4_k_quant", "manifest.json"},
           edit{"manifest.json", "\"kvcts_version\": \"", "\"kvcts_version\": \"9", "wrote it"},
           edit{"manifest.json", "[", "[[", "manifest.json"},
           edit{"candidate.json", "player", "plaier", "candidate.json"},
           edit{"candidate.json", "\"sha256\": \"", "\"sha256\": \"0", "candidate.json"},
           edit{"statement.json", "\"verdict\": \"conforms", "\"verdict\": \"fully conforms",
                "statement.json"},
           edit{"statement.json", "\"candidate_sha256\": \"", "\"candidate_sha256\": \"0",
                "statement.json"},
           edit{"statement.json", "\"waivers\": []", "\"waivers\": [1]", "waiver 1"},
           edit{"environment.json", "\"host\"", "\"hose\"", "no host"},
           edit{"environment.json", "\": \"", "\": 1, \"a\": \"", "environment.json"},
           edit{"log.txt", "verdict: conforms", "verdict: Conforms", "log.txt"},
           edit{"log.txt", "kernels: 2", "kernels: 3", "log.txt: does not end"},
           edit{"log.txt", "kernels: 2", "reference against a.h5: all well\nkernels: 2",
                "log.txt: does not begin"},
           edit{"log.txt", "kernels: 2", "x kernels: 2", "log.txt: the result"},
           edit{"environment.json", "\"version\": \"", "\"version\": \"9", "another candidate"},
           edit{"environment.json", "\"version\"", "\"candidate vendor\": \"x\", \"version\"",
                "environment.json"},
           edit{"manifest.json", "\"kvcts_version\": \"", "\"kvcts_version\": \"\\u001b[2J",
                "kvcts \\x1b[2J"},
       }) {
    std::vector<archive_member> members = good().members();
    std::string& text = named(members, e.member).content;
    const std::size_t at = text.find(e.from);
    ASSERT_NE(at, std::string::npos) << e.member << ": " << e.from;
    text.replace(at, std::string(e.from).size(), e.to);
    expect_members_refused(members, e.words);
  }
}

// A report that is whole in all of its forms and says something else.
TEST(submission, with_a_report_that_does_not_follow_is_refused) {
  player wrong(true), partial(false, true);
  const made_submission failing = submit(wrong), part = submit(partial);
  const auto refused = [](made_submission made, const std::function<void(run_result&)>& change,
                          const std::string& words) {
    change(made.reduced);
    expect_refused(made.check(), words);
  };
  const auto failed = [](run_result& r) -> case_result& {
    return *std::find_if(r.cases.begin(), r.cases.end(),
                         [](const case_result& c) { return c.what == outcome::failed; });
  };
  const std::string conforming = good().reduced.verdict;
  refused(
      failing, [&](run_result& r) { r.verdict = conforming; }, "does not follow");
  refused(
      failing,
      [&](run_result& r) {
        failed(r).bytes_different = 0;
        failed(r).what = outcome::passed;
      },
      "passed with");
  refused(
      failing, [&](run_result& r) { failed(r).what = outcome::unsupported; }, "does not follow");
  refused(
      failing,
      [&](run_result& r) {
        for (case_result& c : r.cases) {
          if (c.what != outcome::failed) continue;
          c.what = outcome::passed;
          c.bytes_different = 0;
          c.output_digests = good().reduced.cases[&c - r.cases.data()].output_digests;
        }
        r.verdict = conforming;
      },
      "bytes that differ");
  refused(
      good(), [](run_result& r) { r.cases.pop_back(); }, "holds 9 cases of 10");
  refused(
      good(), [](run_result& r) { r.cases.push_back(r.cases.back()); }, "holds 11 cases of 10");
  refused(
      good(), [](run_result& r) { std::swap(r.cases[0], r.cases[1]); }, "out of its place");
  refused(
      good(), [](run_result& r) { r.cases[0].name += "x"; }, "out of its place");
  refused(
      good(), [](run_result& r) { r.cases[0].flags.push_back("Past2GiB"); }, "other flags");
  refused(
      good(), [](run_result& r) { r.cases[0].provenance = "captured"; }, "provenance");
  refused(
      good(), [](run_result& r) { r.cases[1].bytes_compared = 0; }, "not compared");
  refused(
      good(), [](run_result& r) { r.suite_digest[0] ^= 1; }, "another suite");
  refused(
      good(), [](run_result& r) { r.level = "exhaustive"; }, "another suite");
  refused(
      good(), [](run_result& r) { r.seed = 2; }, "another suite");
  refused(
      good(), [](run_result& r) { r.profile = "ieee"; }, "another suite");
  refused(
      good(), [](run_result& r) { ++r.suite_version; }, "another suite");
  refused(
      good(), [](run_result& r) { r.sweeps.emplace_back(); }, "no acceptance run");
  refused(
      good(), [](run_result& r) { r.environment.erase("candidate kernels"); },
      "kernels are missing");
  refused(
      good(), [](run_result& r) { r.kernels_claimed = 1; }, "counts of kernels");
  refused(
      good(), [](run_result& r) { r.notices.push_back("waived: nothing"); }, "waived cases");
  refused(
      good(), [](run_result& r) { r.environment.erase("candidate program sha256"); }, "SHA-256");
  refused(
      part, [&](run_result& r) { r.verdict = conforming; }, "does not follow");
  refused(
      part, [](run_result& r) { r.cases[0].what = outcome::passed; }, "does not claim");
  refused(
      good(), [](run_result& r) { r.environment["host"] = "a"; }, "from run to run");
  refused(
      good(), [](run_result& r) { r.environment.erase("kvcts sha256"); }, "SHA-256 of kvcts");
  refused(
      good(), [](run_result& r) { r.environment["kvcts sha256"] = std::string(64, '0'); },
      "another kvcts");
  refused(
      good(), [](run_result& r) { r.environment["candidate vendor"] = "Someone"; },
      "environment.json: is of another candidate");
  refused(
      good(), [](run_result& r) { r.notices.emplace_back("certified by nobody"); },
      "no acceptance run makes");
  refused(
      good(), [](run_result& r) { r.notices.emplace_back("GPU evidence is verified: a\nb"); },
      "no acceptance run makes");
  refused(
      good(), [](run_result& r) { r.notices.emplace_back("GPU evidence is WRONG: all"); },
      "in spite of");
  refused(
      good(),
      [](run_result& r) {
        r.notices.emplace_back("the reference differs from the captured vectors");
      },
      "do not agree");
  refused(
      good(),
      [](run_result& r) {
        r.adequacy = adequacy_score{1, 5, 5, {"a: b"}};
      },
      "the adequacy's counts");
  refused(
      failing,
      [](run_result& r) {
        r.verdict = "does not conform: the GPU evidence is wrong, stale or missing";
      },
      "does not follow");
  refused(
      good(), [](run_result& r) { r.verdict = "does not conform: the moon is full"; },
      "does not follow");
  made_submission told = good();
  told.reduced.notices = {"GPU evidence is verified: 5 cases [a.json]",
                          "GPU evidence: none is recorded"};
  told.reduced.adequacy = adequacy_score{1, 5, 4, {"a: b"}};
  EXPECT_TRUE(told.check().holds) << told.check().problem;
  // To be refused for more than the cases say is no lie.
  made_submission strict = good();
  strict.reduced.verdict = "does not conform: the GPU evidence is wrong, stale or missing";
  EXPECT_TRUE(strict.check().holds) << strict.check().problem;
  EXPECT_FALSE(strict.check().conforms());
}

TEST(submission, of_another_suite_is_refused) {
  expect_refused(check_submission(good_archive(), day, printed), "not the acceptance suite");
}

const waiver of_lens{"combine_topk_swa_indices", "*", "lens are off by one", "R. Manager",
                     "2027-06-30"};

TEST(waivers, never_make_a_full_verdict) {
  player subject(true);
  const made_submission made = submit(subject, {of_lens});
  EXPECT_EQ(made.reduced.verdict.rfind("conforms with waivers (5): 5 cases", 0), 0u)
      << made.reduced.verdict;
  const submission_check check = made.check();
  EXPECT_TRUE(check.conforms()) << check.problem;
  const std::string& last = made.reduced.notices.back();
  EXPECT_EQ(last,
            "waived: combine_topk_swa_indices/*: 5 cases fail: lens are off by one (R. Manager, "
            "until 2027-06-30)");

  run_result again = run_suite(small_plan(), subject, small_options());
  EXPECT_EQ(again.exit_status(false), 1);
  run_result full = again;
  EXPECT_EQ(apply_waivers({of_lens}, false, again), 0);
  EXPECT_EQ(apply_waivers({of_lens}, true, full), 1);
}

TEST(waivers, cover_the_cases_that_they_name_alone) {
  player subject(true);
  run_result result = run_suite(small_plan(), subject, small_options());
  waiver one = of_lens;
  one.cases = result.cases.back().name;
  run_result some = result;
  EXPECT_EQ(apply_waivers({one}, false, some), 1);
  EXPECT_EQ(some.verdict.rfind("does not conform", 0), 0u) << some.verdict;
  EXPECT_NE(some.verdict.find("(1 more are waived)"), std::string::npos) << some.verdict;
  waiver other = of_lens;
  other.kernel = "mxfp4_q_quant";
  run_result none = result;
  EXPECT_EQ(apply_waivers({other}, false, none), 1);
  EXPECT_EQ(none.verdict, result.verdict);
  EXPECT_NE(some.notices.back().find(": 1 case fails: "), std::string::npos) << some.notices.back();
  // Nor is one that wrote nothing, or did more wrong than its bytes.
  for (const bool wrote : {false, true}) {
    run_result more = result;
    if (wrote) {
      more.cases.back().message = "outputs change from run to run";
    } else {
      more.cases.back().bytes_different = 0;
    }
    EXPECT_EQ(apply_waivers({of_lens}, false, more), 1) << wrote;
    EXPECT_NE(more.verdict.find("(4 more are waived)"), std::string::npos) << more.verdict;
  }
  // A crash is nothing that a reason could excuse.
  run_result crashed = result;
  crashed.cases.back().what = outcome::crashed;
  EXPECT_EQ(apply_waivers({of_lens}, false, crashed), 3);
}

TEST(waivers, stand_in_every_member_or_in_none) {
  player subject(true);
  const made_submission made = submit(subject, {of_lens});
  made_submission dropped = made;
  dropped.waivers.clear();
  expect_refused(dropped.check(), "does not follow");
  made_submission widened = made;
  widened.waivers[0].reason = "another reason";
  expect_refused(widened.check(), "waived cases");
  made_submission idle = made;
  idle.waivers.push_back(of_lens);
  idle.waivers.back().cases = "no_such_case";
  expect_refused(idle.check(), "the suite has no such case");
  const submission_check told = made.check();
  ASSERT_EQ(told.waivers.size(), 1u);
  EXPECT_EQ(told.waivers[0].by, "R. Manager");
  EXPECT_EQ(told.candidate_digest, made.reduced.environment.at("kvcts sha256"));
  EXPECT_EQ(told.suite_version, made.reduced.suite_version);
  EXPECT_EQ(told.profile, "nvidia");
  made_submission full = made;
  full.reduced.verdict = good().reduced.verdict;
  expect_refused(full.check(), "does not follow");
}

TEST(waivers, end) {
  player subject(true);
  const made_submission made = submit(subject, {of_lens});
  EXPECT_TRUE(made.check("2027-06-30").holds);
  expect_refused(made.check("2027-07-01"), "ended on 2027-06-30");
}

TEST(waivers, are_read_strictly) {
  const std::string good_one =
      R"({"kernel": "mxfp4_q_quant", "case": "t*", "reason": "r", "by": "b", "until": "2027-01-15"})";
  const auto list = [](const std::string& one) { return R"({"waivers": [)" + one + "]}"; };
  ASSERT_EQ(waivers_from(list(good_one), day).size(), 1u);
  std::string leap = good_one;
  leap.replace(leap.find(day), std::string(day).size(), "2028-02-29");
  EXPECT_NO_THROW(waivers_from(list(leap), day));
  struct edit {
    const char *from, *to, *words;
  };
  for (const edit& e :
       {edit{"\"until\"", "\"til\"", "\"until\" is missing"}, edit{"\"r\"", "3", "\"reason\""},
        edit{"\"r\"", "\"\"", "one line"}, edit{"\"r\"", "\"a\\nb\"", "one line"},
        edit{"mxfp4_q_quant", "mxfp4_*", "unknown kernel"}, edit{"2027-01-15", "soon", "date"},
        edit{"2027-01-15", "2027-13-15", "date"}, edit{"2027-01-15", "2027-02-29", "date"},
        edit{"2027-01-15", "2027-06-31", "date"}, edit{"2027-01-15", "2100-02-29", "date"},
        edit{"\"r\"", "\"  \"", "one line"}, edit{"\"by\": \"b\"", "\"by\": \" \"", "one line"},
        edit{"2027-01-15", "2027-01-14", "ended"},
        edit{"\"by\": \"b\", ", "", "kernel, case, reason, by and until"},
        edit{"{", "{\"more\": \"x\", ", "kernel, case, reason, by and until"}}) {
    std::string text = good_one;
    text.replace(text.find(e.from), std::string(e.from).size(), e.to);
    try {
      waivers_from(list(good_one + "," + text), day);
      ADD_FAILURE() << text;
    } catch (const input_error& error) {
      const std::string what = error.what();
      EXPECT_NE(what.find(e.words), std::string::npos) << what;
      EXPECT_NE(what.find("waiver 2"), std::string::npos) << what;
      EXPECT_EQ(what.find('\n'), std::string::npos) << what;
    }
  }
  for (const char* text : {"", "[]", "{}", "{\"waivers\": 1}", "\xff"}) {
    EXPECT_THROW(waivers_from(text, day), input_error) << text;
  }
  waiver nothing = of_lens;
  nothing.cases = "no_such_case";
  EXPECT_THROW(check_waivers({nothing}, small_plan()), input_error);
  EXPECT_NO_THROW(check_waivers({of_lens}, small_plan()));
}

TEST(report_check, tells_what_is_no_submission_from_what_does_not_hold) {
  const scratch folder;
  const auto put = [&](const char* name, const std::string& bytes) {
    std::ofstream(folder.path(name), std::ios::binary) << bytes;
  };
  put("text", "a text\n");
  put("empty", "");
  put("other.tar", write_archive({{"a", "b"}}));
  put("small.tar", good_archive());
  for (const char* name : {"nothing", "text", "empty", "other.tar", "."}) {
    const program_result r = run_program(std::string("report check ") + name, folder.path(""));
    EXPECT_EQ(r.status, 2) << name << r.out << r.err;
    EXPECT_EQ(std::count(r.err.begin(), r.err.end(), '\n'), 1) << r.err;
    EXPECT_NE(r.err.find(name), std::string::npos) << r.err;
  }
  const program_result r = run_program("report check small.tar", folder.path(""));
  EXPECT_EQ(r.status, 1) << r.err;
  EXPECT_EQ(
      r.out,
      "small.tar does not hold: manifest.json: is not the acceptance suite of this version\n");
  // Refused before anything runs.
  put("waivers.json", "{}");
  for (const char* options : {"--waivers waivers.json", "--waivers nothing", "--submission ."}) {
    const program_result bad = run_program(std::string("accept ") + options, folder.path(""));
    EXPECT_EQ(bad.status, 2) << options << bad.out << bad.err;
    EXPECT_TRUE(bad.out.empty()) << bad.out;
  }
}

// The very commands that docs/acceptance.md gives.
class signing : public ::testing::Test {
 protected:
  void SetUp() override {
    if (std::system("command -v ssh-keygen >/dev/null") != 0) GTEST_SKIP() << "no ssh-keygen";
    std::ofstream(folder_.path("out.tar"), std::ios::binary) << good_archive();
    ASSERT_EQ(shell("ssh-keygen -q -t ed25519 -N '' -C test -f vendor-key"), 0);
    std::ifstream doc(KVCTS_SOURCE_DIR "/docs/acceptance.md");
    for (std::string line; std::getline(doc, line);) {
      if (line.rfind("echo ", 0) == 0) allow_ = line;
      if (line.rfind("ssh-keygen -Y sign ", 0) == 0) sign_ = line;
      if (line.rfind("ssh-keygen -Y verify ", 0) == 0) verify_ = line;
    }
    ASSERT_EQ(shell(allow_), 0) << allow_;
    ASSERT_EQ(shell(sign_), 0) << sign_;
  }
  int shell(const std::string& command) const {
    return std::system(("cd '" + folder_.path("") + "' && (" + command + ") >log 2>&1").c_str());
  }
  int verify() const { return shell(verify_); }
  scratch folder_;
  std::string allow_, sign_, verify_;
};

TEST_F(signing, holds_for_the_very_bytes_and_the_key) {
  EXPECT_EQ(verify(), 0) << text_of_file(folder_.path("log"));
  std::string changed = good_archive();
  changed[changed.size() / 2] ^= 1;
  std::ofstream(folder_.path("out.tar"), std::ios::binary) << changed;
  EXPECT_NE(verify(), 0);
}

TEST_F(signing, refuses_another_key) {
  ASSERT_EQ(shell("rm vendor-key* out.tar.sig && ssh-keygen -q -t ed25519 -N '' -f vendor-key"), 0);
  ASSERT_EQ(shell(sign_), 0);
  EXPECT_NE(verify(), 0);
}

}  // namespace
}  // namespace kvcts
