#include "tests/layers/layer_rules.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <functional>
#include <ostream>
#include <regex>
#include <set>
#include <sstream>

namespace reprise::layers {

namespace {

constexpr int kReadmeLinesMax = 40;
constexpr std::size_t kUnitsMax = 32;
constexpr std::size_t kSmallUnit = 30;  // lines
constexpr std::size_t kTestNameMax = 60;
/// Every folder may include the public headers, in the same way as an outside program does.
constexpr const char* kPublicFolder = "include/reprise";
constexpr const char* kPublicIncludes = "reprise";

bool ends_with_any(std::string_view path, std::initializer_list<std::string_view> ends) {
  return std::any_of(ends.begin(), ends.end(),
                     [path](std::string_view end) { return path.ends_with(end); });
}

std::string_view strip(std::string_view text) {
  const auto first = text.find_first_not_of(" \t\r");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

void for_each_line(std::string_view text, const std::function<void(int, std::string_view)>& visit) {
  int number = 0;
  while (!text.empty()) {
    const auto end = text.find('\n');
    visit(++number, text.substr(0, end));
    text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
  }
}

struct Include {
  std::string_view name;  // empty if the line is not an #include
  bool quoted = false;    // true for "...", false for <...>
};

Include parse_include(std::string_view line) {
  line = strip(line);
  if (!line.starts_with('#')) return {};
  line = strip(line.substr(1));
  if (!line.starts_with("include")) return {};
  line = strip(line.substr(std::string_view("include").size()));
  if (line.empty() || (line[0] != '"' && line[0] != '<')) return {};
  const auto end = line.find(line[0] == '"' ? '"' : '>', 1);
  if (end == std::string_view::npos) return {};
  return {.name = line.substr(1, end - 1), .quoted = line[0] == '"'};
}

std::string joined(const std::set<std::string>& words) {
  std::string text;
  for (const auto& word : words) text += (text.empty() ? "" : ", ") + word;
  return text.empty() ? "none" : text;
}

bool is_vendor_header(std::string_view name) {
  static constexpr std::array<std::string_view, 9> kStarts = {
      "mpi.h",   "mpi-ext.h",          "nccl",  "cuda", "driver_types.h", "cub/",
      "thrust/", "cooperative_groups", "nvtx3/"};
  return std::any_of(kStarts.begin(), kStarts.end(),
                     [name](std::string_view start) { return name.starts_with(start); });
}

bool may_use_vendor_headers(std::string_view path) {
  static constexpr std::array<std::string_view, 7> kFolders = {
      "core/adapters/",         "tests/mpi/",   "tests/gpu/", "tests/nccl/", "tests/core/adapters/",
      "tests/border/programs/", "tests/models/"};
  return std::any_of(kFolders.begin(), kFolders.end(),
                     [path](std::string_view folder) { return path.starts_with(folder); });
}

// The name in cmake/third_party.cmake of the library whose header this is; empty for others.
std::string_view library_of(std::string_view header) {
  struct Start {
    std::string_view header, library;
  };
  static constexpr std::array<Start, 11> kStarts = {{{"fmt/", "fmt"},
                                                     {"nlohmann/", "json"},
                                                     {"yaml-cpp/", "yaml"},
                                                     {"spdlog/", "spdlog"},
                                                     {"CLI/", "cli11"},
                                                     {"boost/context/", "context"},
                                                     {"pugixml", "pugixml"},
                                                     {"re2/", "re2"},
                                                     {"isa-l/", "isal"},
                                                     {"xxhash.h", "xxhash"},
                                                     {"zip.h", "zip"}}};
  for (const auto& start : kStarts) {
    if (header.starts_with(start.header)) return start.library;
  }
  return {};
}

// True for headers in a folder that neither a library of the project has nor the system.
bool is_of_nobody(std::string_view header) {
  static constexpr std::array<std::string_view, 5> kSystem = {"sys/", "netinet/", "arpa/", "linux/",
                                                              "sanitizer/"};
  const bool foreign = header.find('/') != std::string_view::npos || header.ends_with(".hpp");
  return foreign && !is_vendor_header(header) &&
         std::none_of(kSystem.begin(), kSystem.end(),
                      [header](std::string_view start) { return header.starts_with(start); });
}

// Maps each folder to the libraries that its rows in cmake/third_party.cmake name.
struct LibraryTable {
  std::map<std::string, std::set<std::string, std::less<>>> own, open;  // open: PUBLIC rows
};

LibraryTable parse_library_table(std::string_view text) {
  LibraryTable table;
  for_each_line(text, [&table](int, std::string_view line) {
    line = strip(line);
    if (!line.starts_with('"')) return;
    const auto quote = line.rfind('"');
    std::istringstream words{std::string(line.substr(1, quote == 0 ? 0 : quote - 1))};
    std::string folder, library, visibility;
    if (!(words >> folder >> library >> visibility)) return;
    table.own[folder].insert(library);
    if (visibility == "PUBLIC") table.open[folder].insert(library);
  });
  return table;
}

bool is_word_char(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

// Returns true if `text` contains `word` as a whole word, not as part of a longer identifier.
bool holds_word(std::string_view text, std::string_view word) {
  for (auto at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1)) {
    const auto end = at + word.size();
    const bool left = at == 0 || !is_word_char(text[at - 1]);
    if (left && (end == text.size() || !is_word_char(text[end]))) return true;
  }
  return false;
}

std::string check_one_include(const LayerTable& table, const std::string& folder,
                              std::string_view include) {
  const std::string target = folder_of(include);
  const auto& allowed = table.find(folder)->second;
  if (target == folder || allowed.contains(target)) return {};
  if (target == kPublicIncludes && table.contains(kPublicFolder)) return {};
  std::string what = "includes \"" + std::string(include) + "\"";
  what += table.contains(target) ? ", which the layer table does not allow"
                                 : ", which is no path of a layer from the root of the tree";
  return what + "; " + folder + " may include: " + joined(allowed);
}

}  // namespace

bool is_code(std::string_view path) {
  return ends_with_any(path, {".hpp", ".cpp", ".h", ".cuh", ".cu", ".inc"});
}

std::string folder_of(std::string_view path) {
  const auto slash = path.rfind('/');
  return std::string(slash == std::string_view::npos ? std::string_view{} : path.substr(0, slash));
}

std::ostream& operator<<(std::ostream& out, const Finding& finding) {
  return out << finding.path << ':' << finding.line << ": " << finding.what;
}

ParsedTable parse_layer_table(std::string_view text) {
  ParsedTable parsed;
  LayerTable together;  // maps each '@name' to its list of folders
  for_each_line(text, [&parsed, &together](int number, std::string_view line) {
    const auto report = [&](const std::string& what) {
      parsed.findings.push_back({.path = "layers.txt", .line = number, .what = what});
    };
    line = strip(line.substr(0, line.find('#')));
    if (line.empty()) return;
    const bool named = line.starts_with('@');
    const auto sign = line.find(named ? '=' : ':');
    if (sign == std::string_view::npos) {
      return report("not 'folder : folders...' or '@name = folders...'");
    }
    const std::string folder(strip(line.substr(0, sign)));
    std::set<std::string> allowed;
    std::istringstream words{std::string(line.substr(sign + 1))};
    for (std::string word; words >> word;) {
      const LayerTable& known = word.starts_with('@') ? together : parsed.table;
      const auto found = known.find(word);
      if (found == known.end()) {
        report("'" + word + "' is not above " + folder);
      } else if (word.starts_with('@')) {
        allowed.insert(found->second.begin(), found->second.end());
      } else {
        allowed.insert(word);
      }
    }
    if (!(named ? together : parsed.table).emplace(folder, allowed).second) {
      report("'" + folder + "' is defined twice");
    }
  });
  return parsed;
}

std::vector<Finding> check_includes(const LayerTable& table, const std::vector<SourceFile>& tree) {
  std::vector<Finding> findings;
  for (const auto& file : tree) {
    const std::string folder = folder_of(file.path);
    if (!is_code(file.path) || !table.contains(folder)) continue;
    for_each_line(file.text, [&](int number, std::string_view line) {
      const Include include = parse_include(line);
      if (!include.quoted) return;
      const std::string what = check_one_include(table, folder, include.name);
      if (!what.empty()) findings.push_back({.path = file.path, .line = number, .what = what});
    });
  }
  return findings;
}

std::vector<Finding> check_libraries(const LayerTable& table, const std::vector<SourceFile>& tree) {
  static constexpr std::string_view kTable = "cmake/third_party.cmake";
  LibraryTable libraries;
  for (const auto& file : tree) {
    if (file.path == kTable) libraries = parse_library_table(file.text);
  }
  std::vector<Finding> findings;
  for (const auto& file : tree) {
    const std::string folder = folder_of(file.path);
    const auto layer = table.find(folder);
    if (!is_code(file.path) || layer == table.end()) continue;
    for_each_line(file.text, [&](int number, std::string_view line) {
      const Include include = parse_include(line);
      const std::string_view library = library_of(include.name);
      if (include.quoted || libraries.own[folder].contains(library)) return;
      if (library.empty()) {
        if (!is_of_nobody(include.name)) return;
        findings.push_back({.path = file.path,
                            .line = number,
                            .what = "includes <" + std::string(include.name) +
                                    ">, which is of no library that library_of() knows"});
        return;
      }
      for (const auto& above : layer->second) {
        if (libraries.open[above].contains(library)) return;
      }
      findings.push_back({.path = file.path,
                          .line = number,
                          .what = "includes <" + std::string(include.name) + ">; give " + folder +
                                  " a row for " + std::string(library) + " in " +
                                  std::string(kTable)});
    });
  }
  return findings;
}

std::vector<Finding> check_vendor_headers(const std::vector<SourceFile>& tree) {
  std::vector<Finding> findings;
  for (const auto& file : tree) {
    if (!is_code(file.path) || may_use_vendor_headers(file.path)) continue;
    for_each_line(file.text, [&](int number, std::string_view line) {
      const Include include = parse_include(line);
      if (!is_vendor_header(include.name)) return;
      findings.push_back({.path = file.path,
                          .line = number,
                          .what = "includes the vendor header " + std::string(include.name) +
                                  "; that belongs into core/adapters"});
    });
  }
  return findings;
}

std::vector<Finding> check_thread_local(const std::vector<SourceFile>& tree) {
  std::vector<Finding> findings;
  for (const auto& file : tree) {
    if (!is_code(file.path) || !file.path.starts_with("core/")) continue;
    if (file.path.starts_with("core/c/")) continue;  // above it are the threads of a program in C
    for_each_line(file.text, [&](int number, std::string_view line) {
      if (!holds_word(line.substr(0, line.find("//")), "thread_local")) return;
      findings.push_back({.path = file.path,
                          .line = number,
                          .what = "thread_local in core: fibers share a thread and may change it"});
    });
  }
  return findings;
}

std::vector<Finding> check_machine_paths(const std::vector<SourceFile>& tree) {
  // Each word is built from two halves, so that this file itself does not contain it.
  static const std::array<std::string, 4> kWords = {
      std::string("../sha") + "red", std::string("/wo") + "rk", std::string("/ho") + "me/",
      std::string("/Us") + "ers/"};
  std::vector<Finding> findings;
  for (const auto& file : tree) {
    for_each_line(file.text, [&](int number, std::string_view line) {
      for (const auto& word : kWords) {
        const bool folder = word.ends_with('/');
        if (folder ? line.find(word) == std::string_view::npos : !holds_word(line, word)) continue;
        findings.push_back({.path = file.path,
                            .line = number,
                            .what = "names '" + word + "', a path that no user's machine has"});
      }
    });
  }
  return findings;
}

std::vector<Finding> check_readmes(const LayerTable& table, const std::vector<SourceFile>& tree) {
  std::vector<Finding> findings;
  for (const auto& [folder, allowed] : table) {
    const std::string path = folder + "/README.md";
    const auto readme = std::find_if(tree.begin(), tree.end(),
                                     [&path](const SourceFile& file) { return file.path == path; });
    if (readme == tree.end() || readme->text.empty()) {
      findings.push_back(
          {.path = path, .line = 0, .what = "is missing: every layer explains itself"});
      continue;
    }
    const auto lines = std::count(readme->text.begin(), readme->text.end(), '\n');
    if (lines > kReadmeLinesMax) {
      findings.push_back({.path = path, .line = 0, .what = "is longer than 40 lines"});
    }
  }
  return findings;
}

namespace {

/// Returns the anchor that a heading gets: lower case, words joined by hyphens, no punctuation.
std::string anchor_of(std::string_view heading) {
  std::string anchor;
  for (const char c : strip(heading.substr(heading.find_first_not_of('#')))) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) != 0 || c == '_' || c == '-') {
      anchor += static_cast<char>(std::tolower(byte));
    } else if (c == ' ') {
      anchor += '-';
    }
  }
  return anchor;
}

/// Maps each file and folder of the tree to the anchors of its headings.
using Places = std::map<std::string, std::set<std::string>>;

Places places_of(const std::vector<SourceFile>& tree) {
  Places places;
  for (const auto& file : tree) {
    auto& anchors = places[file.path];
    for (auto folder = folder_of(file.path); !folder.empty(); folder = folder_of(folder)) {
      places.try_emplace(folder);
    }
    if (!file.path.ends_with(".md")) continue;
    for_each_line(file.text, [&](int, std::string_view line) {
      if (line.starts_with('#')) anchors.insert(anchor_of(line));
    });
  }
  return places;
}

/// True for README.md and the files of docs/, which name files from the root of the tree.
bool is_page(std::string_view path) {
  return path == "README.md" || (path.starts_with("docs/") && path.ends_with(".md"));
}

/// Returns what is wrong with a link of a page; empty if it leads somewhere or out of the tree.
std::string flaw_of(const std::string& page, const std::string& link, const Places& places) {
  if (link.find("://") != std::string::npos) return {};
  const auto hash = link.find('#');
  const std::string path = link.substr(0, hash);
  const std::string target =
      path.empty() ? page
                   : (std::filesystem::path(folder_of(page)) / path).lexically_normal().string();
  const auto place =
      places.find(target.ends_with('/') ? target.substr(0, target.size() - 1) : target);
  if (place == places.end()) return "links to " + link + ", which is not there";
  if (hash == std::string::npos || place->second.contains(link.substr(hash + 1))) return {};
  return "links to " + link + ", and that page has no such heading";
}

}  // namespace

std::vector<Finding> check_pages(const std::vector<SourceFile>& tree) {
  static const std::regex kLink(R"(\]\(([^)\s]+)\))");
  static const std::regex kPage(R"(\bdocs/[a-z-]+\.md\b)");
  static const std::regex kFile(R"(`([a-z]+/[\w/.-]+\.(?:hpp|cpp|md|py|sh|tsv|txt|cmake))`)");
  const Places places = places_of(tree);
  std::vector<Finding> findings;
  for (const auto& file : tree) {
    if (!file.path.ends_with(".md") && file.text.find("docs/") == std::string::npos) continue;
    for_each_line(file.text, [&](int number, std::string_view line) {
      const std::string text(line);
      const auto add = [&](const std::string& what) {
        if (!what.empty()) findings.push_back({.path = file.path, .line = number, .what = what});
      };
      const auto each = [&text](const std::regex& pattern, int group, const auto& visit) {
        for (auto at = std::sregex_iterator(text.begin(), text.end(), pattern);
             at != std::sregex_iterator(); ++at) {
          visit(at->str(static_cast<std::size_t>(group)));
        }
      };
      if (file.path.ends_with(".md")) {
        each(kLink, 1, [&](const std::string& link) { add(flaw_of(file.path, link, places)); });
      }
      const auto require = [&](const std::string& path) {
        if (!places.contains(path)) add("names " + path + ", which is not there");
      };
      each(kPage, 0, require);
      if (is_page(file.path)) each(kFile, 1, require);
    });
  }
  return findings;
}

std::vector<Finding> check_rooms(const std::vector<SourceFile>& tree) {
  std::map<std::string, std::set<std::string>> units;
  for (const auto& file : tree) {
    if (!is_code(file.path)) continue;
    units[folder_of(file.path)].insert(file.path.substr(0, file.path.rfind('.')));
  }
  std::vector<Finding> findings;
  for (const auto& [folder, all] : units) {
    if (all.size() <= kUnitsMax) continue;
    findings.push_back({.path = folder,
                        .line = 0,
                        .what = "holds " + std::to_string(all.size()) + " units side by side, " +
                                std::to_string(kUnitsMax) + " at most: part it by nouns"});
  }
  return findings;
}

std::vector<Finding> check_small_units(const std::vector<SourceFile>& tree) {
  std::map<std::string, std::size_t> lines;            // by unit
  std::map<std::string, std::set<std::string>> users;  // units by the unit that they include
  const auto unit_of = [](const std::string& path) { return path.substr(0, path.rfind('.')); };
  for (const auto& file : tree) {
    if (!is_code(file.path)) continue;
    const std::string own = unit_of(file.path);
    lines[own] += static_cast<std::size_t>(std::ranges::count(file.text, '\n'));
    for_each_line(file.text, [&](int, std::string_view line) {
      const std::string used = unit_of(std::string(parse_include(line).name));
      if (used != own) users[used].insert(own);
    });
  }
  std::vector<Finding> findings;
  for (const auto& [unit, all] : users) {
    const auto found = lines.find(unit);
    const bool ours = found != lines.end() && !unit.starts_with("include/");
    if (!ours || found->second > kSmallUnit || all.size() != 1) continue;
    findings.push_back({.path = unit,
                        .line = 0,
                        .what = "has " + std::to_string(found->second) + " lines, and only " +
                                *all.begin() + " uses it: make it a part of that"});
  }
  return findings;
}

std::vector<Finding> check_test_names(const std::vector<SourceFile>& tree) {
  // A formatter may break the line after the bracket or the comma.
  static const std::regex kTooLong(
      R"(\b(?:(?:TEST|TYPED_TEST|RC_GTEST_PROP)(?:_[FP])?\(\s*\w+,\s*|def test_)(\w{)" +
      std::to_string(kTestNameMax + 1) + ",})");
  std::vector<Finding> findings;
  for (const auto& file : tree) {
    if (!file.path.starts_with("tests/")) continue;
    if (!is_code(file.path) && !file.path.ends_with(".py")) continue;
    const auto begin = file.text.begin();
    for (auto at = std::sregex_iterator(begin, file.text.end(), kTooLong);
         at != std::sregex_iterator(); ++at) {
      findings.push_back(
          {.path = file.path,
           .line = 1 + static_cast<int>(std::count(begin, begin + at->position(1), '\n')),
           .what = "the name of this test has " + std::to_string(at->length(1)) + " characters, " +
                   std::to_string(kTestNameMax) + " at most: " + at->str(1)});
    }
  }
  return findings;
}

}  // namespace reprise::layers
