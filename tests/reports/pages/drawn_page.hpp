#pragma once
// Opens a page in Chromium, and reads what its script has drawn.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <pugixml.hpp>
#include <regex>
#include <sstream>

#include "reports/pages/pages.hpp"
#include "tests/contracts/temporary_directory.hpp"

namespace reprise::reports {

/// True if there is a Chromium.
inline bool has_browser() { return std::system("command -v chromium >/dev/null 2>&1") == 0; }

/// Returns the page as HTML after its script ran.
inline std::string drawn_html(const std::string& page) {
  const contracts::TemporaryDirectory directory;
  const std::string& at = directory.path();
  std::ofstream(at + "/page.html") << page;
  const std::string command =
      "chromium --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --user-data-dir=" +
      at + "/profile --dump-dom file://" + at + "/page.html >" + at + "/drawn.html 2>/dev/null";
  EXPECT_EQ(std::system(command.c_str()), 0);
  std::ostringstream text;
  text << std::ifstream(at + "/drawn.html").rdbuf();
  return text.str();
}

/// Shows what a reader sees of a page: its head, its sections and its foot.
class DrawnPage {
 public:
  explicit DrawnPage(const Report& report, std::span<const PastReport> earlier = {}) {
    const std::string html = drawn_html(to_html(report, "abc", earlier));
    const auto begin = html.find("<header>");
    text_ = html.substr(begin, html.find("</footer>") + 9 - begin);
    const std::string closed =
        std::regex_replace(text_, std::regex("<input([^>]*)>"), "<input$1/>");
    EXPECT_TRUE(document_.load_string(("<all>" + closed + "</all>").c_str(),
                                      pugi::parse_default | pugi::parse_ws_pcdata))
        << text_;
  }

  const std::string& text() const { return text_; }
  pugi::xml_node one(const std::string& path) const {
    return document_.select_node(path.c_str()).node();
  }
  std::vector<pugi::xml_node> all(const std::string& path) const {
    std::vector<pugi::xml_node> nodes;
    for (const auto& found : document_.select_nodes(path.c_str())) nodes.push_back(found.node());
    return nodes;
  }
  /// Returns the whole text of each node, with what is within it.
  std::vector<std::string> texts(const std::string& path) const {
    std::vector<std::string> texts;
    for (const auto& node : all(path)) {
      texts.push_back(pugi::xpath_query("string(.)").evaluate_string(node));
    }
    return texts;
  }

 private:
  std::string text_;
  pugi::xml_document document_;
};

/// Returns a report of one scenario alone.
inline Report report_with(ScenarioResult result) {
  Report report{.lane = ReportLane::kSim, .verdict = result.verdict, .planned = 1};
  report.scenarios = {std::move(result)};
  return report;
}

inline double number_of(pugi::xml_node node, const char* attribute) {
  return node.attribute(attribute).as_double();
}

}  // namespace reprise::reports
