#include "driver/record/protocol_trace.hpp"

#include <gtest/gtest.h>

namespace reprise::driver {
namespace {

class Deaf final : public Trace {
 public:
  void event(const TraceEvent& /*event*/) override {}
};

TEST(ProtocolTrace, rules_on_a_save_that_returns_before_it_is_complete) {
  Deaf inner;
  std::vector<RulingText> rulings;
  ProtocolTrace trace(Protocol::kSave, "save", inner, rulings);
  trace.returned();
  ASSERT_EQ(rulings.size(), 1U);
  EXPECT_EQ(rulings[0].code, judged::kProtocol);
  EXPECT_EQ(rulings[0].text, "it has returned in the state 'new'");
}

}  // namespace
}  // namespace reprise::driver
