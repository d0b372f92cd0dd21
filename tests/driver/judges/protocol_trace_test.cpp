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
  Findings findings;
  ProtocolTrace trace(Protocol::kSave, "save", inner, findings);
  trace.returned();
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].code, judged::kProtocol);
  EXPECT_EQ(findings[0].text, "it has returned in the state 'new'");
}

}  // namespace
}  // namespace reprise::driver
