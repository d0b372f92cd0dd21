// Tests that production has no code that only tests use, or nobody.
#include "tests/layers/dead_code.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/layers/source_tree.hpp"

namespace reprise::layers {
namespace {

const std::vector<Kept> kKept = {
    {"core/adapters/cuda/cuda_compare.hpp: compare_on_device", "benchmarks of a GPU check results"},
    {"core/plan/save_plan.hpp: decode_local_plan", "fuzzing reads plans one at a time"},
    {"driver/lanes/process_lane.hpp", "tests state each finding on the end of a process"},
    {"driver/record/reference_run.hpp: steps_trained", "tests see that no step is trained twice"},
    {"properties/protocol.hpp: moves_of", "a test checks the tables of moves"},
    {"properties/finding_watch.hpp: watch_findings", "tests/silence listens to judges there"},
    {"sim/world/world.hpp: compute_checksum", "tests give checksums a rate; no port sees them"},
    {"sim/world/sim_store.hpp: crashed", "tests try each state that a crash can leave"},
    {"sim/world/sim_store.hpp: sync_all", "tests begin with a store that lost nothing"},
};

TEST(DeadCode, is_not_in_the_tree) {
  EXPECT_TRUE(none(check_dead_code(parsed().table, tree(), kKept)));
}

// ---------------------------------------------------------------- tests of the checker itself

const LayerTable kTable = {{"a", {}}, {"b", {"a"}}, {"include/reprise", {}}};

/// Returns the findings in these files, as texts, beside a file that includes a/x.hpp.
std::vector<std::string> findings_in(std::vector<SourceFile> files,
                                     const std::vector<Kept>& kept = {}) {
  files.push_back(
      {.path = "b/user.cpp", .text = "#include \"a/x.hpp\"\nint use() { return live(); }\n"});
  std::vector<std::string> texts;
  for (const Finding& finding : check_dead_code(kTable, files, kept)) {
    texts.push_back(finding.path + ':' + std::to_string(finding.line) + ' ' + finding.what);
  }
  return texts;
}

using Texts = std::vector<std::string>;

TEST(DeadCode, a_header_that_only_its_source_and_tests_include_is_found) {
  EXPECT_EQ(findings_in({{"a/x.hpp", "int live();\n"},
                         {"a/y.hpp", "#include \"a/x.hpp\"\n"},
                         {"a/y.cpp", "#include \"a/y.hpp\"\n"},
                         {"tests/a/y_test.cpp", "#include \"a/y.hpp\"\n"}}),
            Texts{"a/y.hpp:0 is included by no other file of production"});
}

TEST(DeadCode, a_function_that_is_only_defined_or_tested_is_found) {
  EXPECT_EQ(findings_in({{"a/x.hpp", "int live();\n\nint dead(int);  // dead(1)\n"},
                         {"a/x.cpp",
                          "#include \"a/x.hpp\"\nint live() { return 1; }\n"
                          "int dead(int n) { return n; }\n"}}),
            Texts{"a/x.hpp:3 dead is used by nobody"});
  EXPECT_EQ(findings_in({{"a/x.hpp", "int live();\nstd::vector<int> dead(int n = 0);\n"},
                         {"tests/t.cpp", "#include \"a/x.hpp\"\nint n = dead(1);\n"}}),
            Texts{"a/x.hpp:2 dead is used by tests alone"});
}

TEST(DeadCode, methods_types_constants_and_fields_are_found) {
  const std::string header =
      "int live();\n"
      "class Dead {\n public:\n  explicit Dead(int n);\n  Dead& self();\n};\n"
      "inline constexpr int kDead = 1;\nusing DeadToo = int;\nenum class DeadKind { kOne };\n"
      "struct Live {\n  int never() const;\n  int ever();\n  int unread = 0;\n  int read;\n};\n";
  const std::string source =
      "#include \"a/x.hpp\"\nDead::Dead(int n) { self(); }\n"
      "int Live::never() const { return 1; }\nint live() { return Live().ever() + Live{}.read; }\n";
  const auto found = findings_in({{"a/x.hpp", header}, {"a/x.cpp", source}});
  EXPECT_EQ(found,
            (Texts{"a/x.hpp:2 Dead is used by nobody", "a/x.hpp:9 DeadKind is used by nobody",
                   "a/x.hpp:8 DeadToo is used by nobody", "a/x.hpp:7 kDead is used by nobody",
                   "a/x.hpp:11 never is used by nobody", "a/x.hpp:13 unread is used by nobody"}));
}

TEST(DeadCode, each_way_to_use_a_name_is_one) {
  for (const char* use :
       {"int n = f();", "struct S { int n = f(); };", "struct S { int (*g)() = f; };",
        "struct S { S() : n_(f()) {} int n_; };", "int g() { return f(); }", "#define G f()\n",
        "template <int (*F)() = f> struct S {};", "static_assert(f() > 0);", "int n{f()};",
        "const int n = reprise::f();", "decltype(f()) n;", "int g(int n = f());"}) {
    const std::string text = std::string("#include \"a/x.hpp\"\n") + use + "\nint z = live();\n";
    EXPECT_EQ(findings_in({{"a/x.hpp", "int live();\nint f();\n"}, {"b/z.cpp", text}}), Texts{})
        << use;
  }
}

TEST(DeadCode, a_name_in_a_comment_a_text_or_an_unrelated_file_is_no_use) {
  for (const char* text :
       {"#include \"a/x.hpp\"\n// f()\n", "#include \"a/x.hpp\"\nauto s = \"f()\";\n",
        "#include \"a/x.hpp\"\nauto s = R\"(\" f())\";\n",
        "#include \"a/x.hpp\"\n/* f()\n f() */\n", "int n = f();\n"}) {
    EXPECT_EQ(findings_in({{"a/x.hpp", "int live();\nint f();\n"}, {"b/z.cpp", text}}),
              Texts{"a/x.hpp:2 f is used by nobody"})
        << text;
  }
  // An include of an include sees it.
  EXPECT_EQ(findings_in({{"a/x.hpp", "int live();\nint f();\n"},
                         {"b/y.hpp", "#include \"a/x.hpp\"\n"},
                         {"b/z.cpp", "#include \"b/y.hpp\"\nint n = f();\n"}}),
            Texts{});
}

TEST(DeadCode, overrides_and_names_of_public_headers_are_used_elsewhere) {
  const std::string header =
      "int live();\nstruct S {\n  int f(int n) const override;\n  int g();\n};\nS s;\n";
  EXPECT_EQ(findings_in({{"a/x.hpp", header}, {"b/z.cpp", "#include \"a/x.hpp\"\nS t;\n"}}),
            Texts{"a/x.hpp:4 g is used by nobody"});
  EXPECT_EQ(
      findings_in({{"a/x.hpp", header}, {"include/reprise/y.hpp", "int g();\nint only_here();\n"}}),
      Texts{});
}

TEST(DeadCode, an_exception_excuses_one_finding_and_an_idle_one_is_found) {
  const std::vector<SourceFile> files = {{"a/x.hpp", "int live();\nint f();\n"}, {"a/y.hpp", ""}};
  EXPECT_EQ(findings_in(files, {{"a/x.hpp: f", "tests"}, {"a/y.hpp", "programs outside"}}),
            Texts{});
  EXPECT_EQ(findings_in(files, {{"a/x.hpp: f", ""}, {"a/y.hpp", ""}, {"a/x.hpp: live", ""}}),
            Texts{"a/x.hpp: live:0 is used, or is not there: it needs no exception"});
}

}  // namespace
}  // namespace reprise::layers
