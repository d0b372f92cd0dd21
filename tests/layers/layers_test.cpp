// Tests that the tree obeys its own table of layers, and that the checker finds violations.
#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

#include "tests/layers/layer_rules.hpp"
#include "tests/layers/source_tree.hpp"

namespace reprise::layers {
namespace {

TEST(Tree, the_table_reads_and_each_line_uses_only_folders_above_it) {
  EXPECT_TRUE(none(parsed().findings));
  EXPECT_GE(parsed().table.size(), 19U);
  EXPECT_TRUE(parsed().table.contains("core/base"));
}

TEST(Tree, includes_follow_the_layer_table) {
  EXPECT_TRUE(none(check_includes(parsed().table, tree())));
}

TEST(Tree, vendor_headers_stay_in_the_adapters) { EXPECT_TRUE(none(check_vendor_headers(tree()))); }

TEST(Tree, libraries_are_used_by_the_folders_that_list_them) {
  EXPECT_TRUE(none(check_libraries(parsed().table, tree())));
}

TEST(Tree, core_has_no_thread_local) { EXPECT_TRUE(none(check_thread_local(tree()))); }

TEST(Tree, names_no_path_of_the_machine_it_was_written_on) {
  EXPECT_TRUE(none(check_machine_paths(tree())));
}

TEST(Tree, every_layer_has_a_readme_of_at_most_40_lines) {
  EXPECT_TRUE(none(check_readmes(parsed().table, tree())));
}

TEST(Tree, links_of_pages_lead_somewhere) { EXPECT_TRUE(none(check_pages(tree()))); }

TEST(Tree, no_folder_has_too_many_files_side_by_side) { EXPECT_TRUE(none(check_rooms(tree()))); }

TEST(Tree, what_one_file_uses_and_is_small_is_part_of_it) {
  EXPECT_TRUE(none(check_small_units(tree())));
}

TEST(Tree, names_of_tests_are_short) { EXPECT_TRUE(none(check_test_names(tree()))); }

// ---------------------------------------------------------------- tests of the checker itself

const LayerTable kSmallTable = {
    {"low", {}}, {"mid", {"low"}}, {"core/engine", {"low", "mid"}}, {"include/reprise", {}}};

struct IncludeRow {
  const char* name;
  const char* path;
  const char* text;
  int findings;
};

std::ostream& operator<<(std::ostream& out, const IncludeRow& row) { return out << row.name; }

class IncludeRule : public testing::TestWithParam<IncludeRow> {};

TEST_P(IncludeRule, row) {
  const auto& row = GetParam();
  const auto findings = check_includes(kSmallTable, {{.path = row.path, .text = row.text}});
  EXPECT_EQ(findings.size(), static_cast<std::size_t>(row.findings));
}

INSTANTIATE_TEST_SUITE_P(
    Checker, IncludeRule,
    testing::Values(
        IncludeRow{"own_folder", "mid/a.cpp", "#include \"mid/a.hpp\"\n", 0},
        IncludeRow{"allowed_folder", "mid/a.cpp", "#include \"low/a.hpp\"\n", 0},
        IncludeRow{"upwards", "low/a.cpp", "#include \"mid/a.hpp\"\n", 1},
        IncludeRow{"upwards_with_spaces", "low/a.hpp", "  #  include   \"mid/a.hpp\"", 1},
        IncludeRow{"two_of_three", "low/a.cu",
                   "#include \"mid/a.hpp\"\n#include \"low/b.hpp\"\n#include \"mid/b.hpp\"\n", 2},
        IncludeRow{"not_from_the_root", "mid/a.cpp", "#include \"a.hpp\"\n", 1},
        IncludeRow{"by_dots", "mid/a.cpp", "#include \"../low/a.hpp\"\n", 1},
        IncludeRow{"no_layer", "mid/a.cpp", "#include \"tests/a.hpp\"\n", 1},
        IncludeRow{"public", "low/a.cpp", "#include \"reprise/error.hpp\"\n", 0},
        IncludeRow{"public_that_goes_in", "include/reprise/a.hpp", "#include \"low/a.hpp\"\n", 1},
        IncludeRow{"system", "low/a.cpp", "#include <vector>\n", 0},
        IncludeRow{"comment", "low/a.cpp", "// #include \"mid/a.hpp\"\n", 0},
        IncludeRow{"folder_outside_the_table", "tests/a.cpp", "#include \"mid/a.hpp\"\n", 0},
        IncludeRow{"no_code", "low/README.md", "#include \"mid/a.hpp\"\n", 0}),
    [](const auto& row) { return std::string(row.param.name); });

TEST(Checker, finding_names_file_line_include_and_the_allowed_set) {
  const auto findings = check_includes(
      kSmallTable, {{.path = "mid/a.cpp", .text = "\n#include \"core/engine/x.hpp\"\n"}});
  ASSERT_EQ(findings.size(), 1U);
  std::ostringstream text;
  text << findings[0];
  EXPECT_EQ(text.str(),
            "mid/a.cpp:2: includes \"core/engine/x.hpp\", which the layer table does not allow; "
            "mid may include: low");
}

TEST(Checker, table_that_points_downwards_or_repeats_is_refused) {
  EXPECT_EQ(parse_layer_table("a : b\nb :\n").findings.size(), 1U);
  EXPECT_EQ(parse_layer_table("a :\na :\n").findings.size(), 1U);
  EXPECT_EQ(parse_layer_table("a\n").findings.size(), 1U);
  EXPECT_TRUE(none(parse_layer_table("# words\n\na :  # none\nb : a\n").findings));
}

TEST(Checker, vendor_header_outside_the_adapters_is_found) {
  const auto in = [](const char* path, const char* text) {
    return check_vendor_headers({{.path = path, .text = text}}).size();
  };
  EXPECT_EQ(in("core/engine/a.cpp", "#include <mpi.h>\n"), 1U);
  EXPECT_EQ(in("sim/world/a.hpp", "#include <cuda_runtime.h>\n#include \"nccl.h\"\n"), 2U);
  EXPECT_EQ(in("core/adapters/mpi/a.cpp", "#include <mpi.h>\n"), 0U);
  EXPECT_EQ(in("tests/gpu/a.cpp", "#include <cuda.h>\n"), 0U);
  EXPECT_EQ(in("tests/nccl/a.cpp", "#include <nccl.h>\n"), 0U);
}

TEST(Checker, library_that_the_folder_does_not_list_is_found) {
  const auto in = [](const char* path, const char* text) {
    return check_libraries(
               kSmallTable,
               {{.path = "cmake/third_party.cmake",
                 .text = "  \"low   json   PUBLIC\"\n  \"mid          fmt  PRIVATE\")\n"},
                {.path = path, .text = text}})
        .size();
  };
  EXPECT_EQ(in("low/a.cpp", "#include <fmt/format.h>\n"), 1U);
  EXPECT_EQ(in("mid/a.cpp", "#include <fmt/format.h>\n#include <nlohmann/json.hpp>\n"), 0U);
  EXPECT_EQ(in("core/engine/a.cpp", "#include <fmt/core.h>\n#include <nlohmann/json.hpp>\n"), 1U);
  EXPECT_EQ(in("low/a.cpp", "#include <vector>\n#include <pugixml.hpp>\n"), 1U);
  EXPECT_EQ(in("mid/a.cpp", "#include <sys/stat.h>\n#include <curl/curl.h>\n"), 1U);
}

TEST(Checker, thread_local_in_core_is_found_and_comments_are_not) {
  const std::string word = std::string("thread") + "_local";
  const auto in = [](const std::string& path, const std::string& text) {
    return check_thread_local({{.path = path, .text = text}}).size();
  };
  EXPECT_EQ(in("core/base/a.cpp", "static " + word + " int x;\n"), 1U);
  EXPECT_EQ(in("core/base/a.cpp", "// no " + word + "\n"), 0U);
  EXPECT_EQ(in("sim/world/a.cpp", word + " int x;\n"), 0U);
  EXPECT_EQ(in("core/c/a.cpp", word + " int x;\n"), 0U);
}

TEST(Checker, machine_path_is_found) {
  const auto in = [](const std::string& text) {
    return check_machine_paths({{.path = "a.md", .text = text}}).size();
  };
  EXPECT_EQ(in(std::string("see /wo") + "rk/x"), 1U);
  EXPECT_EQ(in(std::string("see ../sha") + "red/x"), 1U);
  EXPECT_EQ(in(std::string("cd /ho") + "me/someone"), 1U);
  EXPECT_EQ(in("the /workspace of a container, /tmp/x, shared/x"), 0U);
}

TEST(Checker, missing_and_long_readme_are_found) {
  const LayerTable table = {{"a", {}}, {"b", {}}, {"c", {}}};
  const auto findings =
      check_readmes(table, {{.path = "a/README.md", .text = std::string(41, '\n')},
                            {.path = "b/README.md", .text = std::string(40, '\n')}});
  EXPECT_EQ(findings.size(), 2U);
}

TEST(Checker, a_link_or_a_name_of_a_page_that_leads_nowhere_is_found) {
  const auto in = [](const std::string& path, const std::string& text) {
    return check_pages({{.path = "docs/speed.md", .text = "# Speed\n## What was tried, and why\n"},
                        {.path = path, .text = text}})
        .size();
  };
  EXPECT_EQ(in("a/README.md", "[speed](../docs/speed.md#what-was-tried-and-why) [all](../docs/)"),
            0U);
  EXPECT_EQ(in("a/README.md", "[torch](https://pytorch.org/x.md) [above](#a)\n# A\n"), 0U);
  EXPECT_EQ(in("docs/" + std::string("b.md"),
               "[speed](fast.md), [speed](speed.md#rates), [here](#nothing)"),
            3U);
  EXPECT_EQ(in("docs/" + std::string("b.md"), "`docs/speed.md` `a/no.hpp` `a/*.cpp`"), 1U);
  EXPECT_EQ(in("a/README.md", "`mine/b.hpp`"), 0U);
  EXPECT_EQ(in("a/b.cpp", "// See docs/speed.md.\nlist[0](x);\n"), 0U);
  EXPECT_EQ(in("a/b.cpp", "// See docs/fa" + std::string("st.md.\n")), 1U);
}

TEST(Checker, a_table_gives_a_name_to_folders_that_are_included_together) {
  const ParsedTable read =
      parse_layer_table("a :\nb : a\n@both = a b\nc : @both\nd : @none\n@both = a\n");
  EXPECT_EQ(read.table.at("c"), (std::set<std::string>{"a", "b"}));
  ASSERT_EQ(read.findings.size(), 2U);
  EXPECT_EQ(read.findings[0].what, "'@none' is not above d");
  EXPECT_EQ(read.findings[1].what, "'@both' is defined twice");
}

TEST(Checker, finds_a_folder_with_too_many_files) {
  std::vector<SourceFile> files;
  for (int i = 0; i < 32; ++i) files.push_back({"a/" + std::to_string(i) + ".cpp", ""});
  files.push_back({"a/README.md", ""});
  files.push_back({"a/inner/0.cpp", ""});
  files.push_back({"a/7.hpp", ""});  // one unit with a/7.cpp
  EXPECT_TRUE(none(check_rooms(files)));
  files.push_back({"a/32.hpp", ""});
  ASSERT_EQ(check_rooms(files).size(), 1U);
  EXPECT_EQ(check_rooms(files)[0].path, "a");
}

TEST(Checker, finds_a_small_unit_that_one_file_uses) {
  std::vector<SourceFile> files = {{"a/x.hpp", std::string(20, '\n')},
                                   {"a/x.cpp", "#include \"a/x.hpp\"\n"},
                                   {"b/y.cpp", "#include \"a/x.hpp\"\n"}};
  ASSERT_EQ(check_small_units(files).size(), 1U);
  EXPECT_EQ(check_small_units(files)[0].path, "a/x");
  files.push_back({"b/z.cpp", "#include \"a/x.hpp\"\n"});
  EXPECT_TRUE(none(check_small_units(files))) << "two use it";
  files.pop_back();
  files.push_back({"a/x.cu", std::string(20, '\n')});
  EXPECT_TRUE(none(check_small_units(files))) << "it is not small";
}

TEST(Checker, finds_a_name_of_a_test_that_is_too_long) {
  const auto in = [](const std::string& path, const std::string& text) {
    return check_test_names({{.path = path, .text = text}});
  };
  const std::string name(60, 'n');
  for (const char* macro : {"TEST", "TEST_F", "TEST_P", "TYPED_TEST_P", "RC_GTEST_PROP"}) {
    for (const char* comma : {", ", ",\n     "}) {
      const std::string begin = "int x;\n" + (macro + ("(Suite" + std::string(comma)));
      EXPECT_TRUE(none(in("tests/a_test.cpp", begin + name + ") {"))) << begin;
      EXPECT_EQ(in("tests/a_test.cpp", begin + name + "n) {").size(), 1U) << begin;
    }
  }
  EXPECT_TRUE(none(in("tests/a.py", "def test_" + name + "(self):")));
  EXPECT_EQ(in("tests/a.py", "\n  def test_" + name + "n(self):").at(0).line, 2);
  EXPECT_TRUE(none(in("core/a.cpp", "TEST(Suite, " + name + "n)"))) << "no test";
}

}  // namespace
}  // namespace reprise::layers
