#include "tests/silence/judge_source.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <regex>
#include <set>
#include <string_view>

namespace reprise::silence {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kTaken = "SourceLine line = ";

/// Returns the text of a file with blanks for comments and for the content of strings.
std::string code_in(const fs::path& path) {
  std::ifstream in(path);
  std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text.compare(i, 2, "//") == 0) {
      for (; i < text.size() && text[i] != '\n'; ++i) text[i] = ' ';
    } else if (text[i] == '"') {
      for (++i; i < text.size() && text[i] != '"'; ++i) {
        if (text[i] == '\\') text[i++] = ' ';
        text[i] = ' ';
      }
    } else if (text[i] == '\'' && i + 2 < text.size() && text[i + 2] == '\'') {
      text[i + 1] = ' ';
      i += 2;
    }
  }
  return text;
}

bool opens(char letter) { return letter == '(' || letter == '{' || letter == '['; }
bool closes(char letter) { return letter == ')' || letter == '}' || letter == ']'; }

/// Returns where the bracket at `open` is closed.
std::size_t end_of(const std::string& text, std::size_t open) {
  int depth = 0;
  for (std::size_t i = open; i < text.size(); ++i) {
    depth += opens(text[i]) ? 1 : closes(text[i]) ? -1 : 0;
    if (depth == 0) return i;
  }
  return text.size();
}

/// Returns the name of the function or lambda whose parameters contain what stands at `at`.
std::string taker_of(const std::string& text, std::size_t at) {
  int depth = 1;
  while (at > 0 && depth > 0) {
    --at;
    depth += closes(text[at]) ? 1 : opens(text[at]) ? -1 : 0;
  }
  static const std::regex kName(R"((?:(\w+) = \[[^\]]*\]|(\w+))$)");
  std::smatch found;
  const std::string before = text.substr(0, at);
  const auto begin = before.size() > 80 ? before.end() - 80 : before.begin();
  if (!std::regex_search(begin, before.end(), found, kName)) return "";
  return found[1].matched ? found[1] : found[2];
}

std::set<std::string> takers_in(const std::string& text) {
  std::set<std::string> names;
  for (auto at = text.find(kTaken); at != std::string::npos; at = text.find(kTaken, at + 1)) {
    names.insert(taker_of(text, at));
  }
  return names;
}

/// Returns "BIT_MISMATCH" for "BitMismatch".
std::string upper(const std::string& name) {
  std::string text;
  for (const char letter : name) {
    if (!text.empty() && std::isupper(static_cast<unsigned char>(letter)) != 0) text += '_';
    text += static_cast<char>(std::toupper(static_cast<unsigned char>(letter)));
  }
  return text;
}

const std::string kCode = R"((?:judged::|passed_on::|\bCode::)k([A-Z]\w*))";

class Reader {
 public:
  Reader(std::string file, std::string text) : text_(std::move(text)), file_(std::move(file)) {}

  JudgeSource read(std::set<std::string> helpers) {
    helpers.insert({"fail", "fail_at", "vacuous", "find", "doubt"});
    std::string names;
    for (const auto& name : helpers) names += (names.empty() ? "" : "|") + name;
    // Not a member of something, nor of a namespace but this one; a list is no code.
    add_each(std::regex(R"((?:^|[^\w.>:]|judged::)((?:)" + names + R"()\()(?!\{))"), 1);
    add_each(std::regex(R"((\{)\s*(?:[\w.> -]+ \? )?)" + kCode), 1);
    add_each(std::regex(R"((\{)\s*\.code = (?!\w+(?:\.|->)code\b))"), 1);
    add_others();
    return std::move(source_);
  }

 private:
  int line_of(std::size_t at) const {
    return 1 + static_cast<int>(std::count(text_.begin(), text_.begin() + at, '\n'));
  }

  void add_each(const std::regex& pattern, std::size_t group) {
    for (std::sregex_iterator at(text_.begin(), text_.end(), pattern), end; at != end; ++at) {
      const auto begin = static_cast<std::size_t>(at->position(group));
      const auto open = begin + static_cast<std::size_t>(at->length(group)) - 1;
      add(begin, end_of(text_, open));
    }
  }

  void add(std::size_t begin, std::size_t end) {
    static const std::regex kPassesOn(R"(\bline\b)");
    static const std::regex kRowOfTable(R"(^\{[\w: ]+, -?\d+\}$)");
    const std::string own = text_.substr(begin, end - begin + 1);
    const bool is_head = text_.substr(0, begin).ends_with("void ");
    if (is_head || std::regex_search(own, kPassesOn)) return;
    taken_.emplace_back(begin, end);
    if (std::regex_search(own, kRowOfTable)) return;
    Statement statement{file_, line_of(begin), line_of(end)};
    // A compiler may take the line of the call around an object that stands on a line of its own.
    const bool begins_line = text_.find_last_not_of(" \n", begin - 1) < text_.rfind('\n', begin);
    if (text_[begin] == '{' && begins_line) --statement.first;
    for (const auto& [at, code] : codes_in(own)) statement.codes.push_back(code);
    source_.statements.push_back(std::move(statement));
  }

  static std::vector<std::pair<std::size_t, FindingCode>> codes_in(const std::string& text) {
    static const std::regex kPattern(kCode);
    std::vector<std::pair<std::size_t, FindingCode>> all;
    for (std::sregex_iterator at(text.begin(), text.end(), kPattern), end; at != end; ++at) {
      const auto code = finding_code_named(upper((*at)[1]));
      if (code) all.emplace_back(at->position(), *code);
    }
    return all;
  }

  void add_others() {
    for (const auto& [at, code] : codes_in(text_)) {
      const bool taken = std::any_of(taken_.begin(), taken_.end(), [where = at](const auto& range) {
        return range.first <= where && where <= range.second;
      });
      if (!taken) source_.named.push_back({file_, line_of(at), code});
    }
  }

  std::string text_;
  std::string file_;
  JudgeSource source_;
  std::vector<std::pair<std::size_t, std::size_t>> taken_;
};

}  // namespace

JudgeSource read_judge(const std::string& root, const std::string& file) {
  const fs::path path = fs::path(root) / file;
  const std::string text = code_in(path);
  auto helpers = takers_in(text);
  helpers.merge(takers_in(code_in(fs::path(path).replace_extension(".hpp"))));
  return Reader(file, text).read(std::move(helpers));
}

std::vector<std::string> sources_of_judges(const std::string& root) {
  constexpr std::array kFolders = {"properties",   "driver/exhaust",  "driver/judges",
                                   "driver/lanes", "driver/programs", "driver/record",
                                   "driver/runs",  "driver/witness"};
  std::vector<std::string> files;
  for (const char* folder : kFolders) {
    for (const auto& entry : fs::directory_iterator(fs::path(root) / folder)) {
      files.push_back(folder + ("/" + entry.path().filename().string()));
    }
  }
  std::erase_if(files, [](const std::string& file) {
    const bool is_parser = file.ends_with("/record.cpp") || file.ends_with("/finding_code.cpp");
    return is_parser || (!file.ends_with(".cpp") && !file.ends_with("/protocol_trace.hpp"));
  });
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace reprise::silence
