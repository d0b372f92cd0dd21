// Compares what the reader says of pickles made by hand with what Python says. The pickles and
// Python's answers are in tests/data/vectors/pickles.tsv, which tests/interop/make_pickles.py made.

#include <gtest/gtest.h>

#include <map>
#include <sstream>

#include "core/format/pickle/pickle_machine.hpp"
#include "tests/core/format/items.hpp"
#include "tests/core/format/pickles.hpp"

namespace reprise::test {
namespace {

struct Row {
  std::string name;
  Bytes pickle;
  bool loads = false;  ///< Python loads it
};

Bytes bytes_of_hex(const std::string& digits) {
  Bytes bytes;
  for (std::size_t i = 0; i + 1 < digits.size(); i += 2) {
    bytes.push_back(static_cast<std::byte>(std::stoul(digits.substr(i, 2), nullptr, 16)));
  }
  return bytes;
}

std::vector<Row> rows() {
  std::vector<Row> found;
  const Bytes file = test_file("vectors/pickles.tsv");
  std::istringstream lines{std::string(as_text(file))};
  for (std::string line; std::getline(lines, line);) {
    const auto first = line.find('\t');
    const auto second = line.find('\t', first + 1);
    found.push_back({line.substr(0, first),
                     bytes_of_hex(line.substr(first + 1, second - first - 1)),
                     line.substr(second + 1) == "loads"});
  }
  return found;
}

/// Returns what the reader says: "value", "opaque: <reason>" or "<code>: <message>".
std::string said_of(const Row& row) {
  const bool metadata = row.name.starts_with("metadata: ");
  try {
    if (metadata) {
      pickle::read_graph(row.pickle, pickle::Grammar::kMetadata, {"hand.pkl"});
      return "value";
    }
    const PickledValue read = decode_value(row.pickle, {"hand.pkl"}, nullptr);
    return read.opaque ? "opaque: " + read.reason : "value";
  } catch (const Error& error) {
    return std::string(name_of(error.code())) + ": " + error.message();
  }
}

/// Pickles of which the reader says why it does not read them, whatever Python does.
const std::map<std::string, std::string> kSaysWhyNot = {
    {"device that is unknown", "opaque: torch.device may not be given these arguments"},
    {"numpy dtype of a bad order", "opaque: numpy.dtype may not be given this state"},
    {"DUP", "UNSUPPORTED: opcode DUP belongs to the text protocols"},
    {"INT", "UNSUPPORTED: opcode INT belongs to the text protocols"},
    {"UNICODE", "UNSUPPORTED: opcode UNICODE belongs to the text protocols"},
    {"LIST", "UNSUPPORTED: opcode LIST belongs to the text protocols"},
    {"GET of text", "UNSUPPORTED: opcode PUT belongs to the text protocols"},
};

TEST(PickleVectors, what_python_refuses_is_refused_and_what_it_loads_is_a_value) {
  std::size_t loaded = 0;
  std::size_t refused = 0;
  for (const Row& row : rows()) {
    SCOPED_TRACE(row.name);
    const std::string said = said_of(row);
    if (const auto why = kSaysWhyNot.find(row.name); why != kSaysWhyNot.end()) {
      EXPECT_TRUE(said.starts_with(why->second)) << said;
    } else if (row.loads) {
      ++loaded;
      EXPECT_EQ(said, "value");
    } else {
      ++refused;
      EXPECT_NE(said, "value");
      EXPECT_FALSE(said.starts_with("opaque")) << said;
    }
  }
  EXPECT_GE(loaded, 30U);
  EXPECT_GE(refused, 50U);
}

}  // namespace
}  // namespace reprise::test
