// Tests what is read from NCCL's log. The lines have the forms that src/transport/*.cc of NCCL
// prints.
#include "core/adapters/nccl/transports.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace reprise {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(Transports, are_those_of_the_channels_each_once) {
  EXPECT_THAT(
      transports_in("node0:71:71 [0] NCCL INFO Bootstrap : Using lo:127.0.0.1<0>\n"
                    "node0:71:80 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM\n"
                    "node0:71:80 [0] NCCL INFO Channel 01/0 : 0[0] -> 1[1] via P2P/CUMEM\n"
                    "node0:71:80 [0] NCCL INFO Channel 00/0 : 3[0] -> 0[0] [receive] via "
                    "NET/Socket/0\n"
                    "node0:71:80 [0] NCCL INFO Channel 02 : 0[0] -> 1[1] via SHM/direct/direct"),
      ElementsAre("NET/Socket/0", "P2P/CUMEM", "SHM/direct/direct"));
}

TEST(Transports, are_none_where_no_channel_is_named) {
  EXPECT_THAT(transports_in(""), IsEmpty());
  EXPECT_THAT(transports_in("node0:71:71 [0] NCCL INFO NET/Plugin: loaded via dlopen\n"
                            "node0:71:71 [0] NCCL WARN Channel 0 : failed via NET\n"),
              IsEmpty());
}

}  // namespace
}  // namespace reprise
