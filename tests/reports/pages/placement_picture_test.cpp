// Tests the pictures of a tensor's cut over ranks.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <pugixml.hpp>

#include "reports/pages/pictures.hpp"
#include "tests/reports/sample_report.hpp"

namespace reprise::reports {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

/// The rectangles of one look in a picture, with their places and hints.
struct Rectangle {
  double x = 0;
  double y = 0;
  double width = 0;
  double height = 0;
  std::string hint;
};

class PlacementPicture : public testing::Test {
 protected:
  /// Draws the placement and keeps the pictures, which must have text alternatives.
  void draw(const TensorPlacement& placement) {
    pictures_.clear();
    captions_.clear();
    const std::string html =
        placement_figures(Failure{.life = 1, .rank = placement.rank, .placement = placement});
    ASSERT_TRUE(document_.load_string(("<all>" + html + "</all>").c_str())) << html;
    for (const auto& figure : document_.child("all").child("div").children("figure")) {
      pictures_.push_back(figure.child("div").child("svg"));
      captions_.emplace_back(figure.child_value("figcaption"));
      EXPECT_STRNE(pictures_.back().child_value("title"), "");
      EXPECT_STRNE(pictures_.back().child_value("desc"), "");
    }
  }

  std::vector<Rectangle> boxes(std::size_t picture, const std::string& look) const {
    std::vector<Rectangle> found;
    for (const auto& box : pictures_[picture].children("rect")) {
      if (std::string(box.attribute("class").value()).find(look) == std::string::npos) continue;
      found.push_back({box.attribute("x").as_double(), box.attribute("y").as_double(),
                       box.attribute("width").as_double(), box.attribute("height").as_double(),
                       box.child_value("title")});
    }
    return found;
  }

  std::vector<std::string> hints(std::size_t picture, const std::string& look) const {
    std::vector<std::string> found;
    for (const auto& box : boxes(picture, look)) found.push_back(box.hint);
    return found;
  }

  std::vector<std::string> texts(std::size_t picture, const std::string& look) const {
    std::vector<std::string> found;
    for (const auto& text : pictures_[picture].children("text")) {
      if (text.attribute("class").value() == look) found.emplace_back(text.child_value());
    }
    return found;
  }

  std::size_t strokes(std::size_t picture) const {
    std::size_t count = 0;
    for (const auto& line : pictures_[picture].children("polyline")) {
      count += std::string(line.attribute("class").value()) == "cross" ? 1 : 0;
    }
    return count;
  }

  pugi::xml_document document_;
  std::vector<pugi::xml_node> pictures_;
  std::vector<std::string> captions_;
};

TEST_F(PlacementPicture, has_a_grid_for_the_save_and_one_for_the_load_with_captions) {
  draw(sample_placement());
  ASSERT_EQ(pictures_.size(), 2U);
  EXPECT_THAT(hints(0, "part"), ElementsAre("ranks 0, 2: [0:3, 0:4]", "ranks 1, 3: [3:6, 0:4]"));
  EXPECT_THAT(texts(0, "middle"), ElementsAre("ranks 0, 2", "ranks 1, 3"));
  EXPECT_THAT(hints(1, "part"),
              ElementsAre("rank 0: [0:6, 0:1]", "rank 1: [0:6, 1:2]", "rank 2: [0:6, 2:3]"));
  EXPECT_THAT(texts(1, "middle quiet"), ElementsAre("0", "1", "2", "3", "4")) << "the cuts";
  EXPECT_THAT(captions_[0], HasSubstr("At the save of life 0 (tp2): w of shape [6, 4]"));
  EXPECT_THAT(captions_[1], HasSubstr("At the load of life 1 (tp2)"));
  EXPECT_THAT(captions_[1], HasSubstr("1 more part."));
}

TEST_F(PlacementPicture, the_wrong_element_has_a_cross_and_its_part_outlines_twice) {
  draw(sample_placement());
  EXPECT_THAT(hints(0, "wrong"), ElementsAre("ranks 1, 3: [3:6, 0:4]"));
  EXPECT_THAT(hints(1, "wrong"), ElementsAre("rank 1: [0:6, 1:2]"));
  EXPECT_EQ(strokes(0), 2U);
  EXPECT_EQ(strokes(1), 2U);
  EXPECT_THAT(captions_[0], HasSubstr("The cross marks the wrong element w[4, 1]"));
  // The cross is within the outline.
  const auto cross = pictures_[1].find_child_by_attribute("polyline", "class", "cross");
  double x = 0;
  double y = 0;
  ASSERT_EQ(std::sscanf(cross.attribute("points").value(), "%lf,%lf", &x, &y), 2);
  const Rectangle outline = boxes(1, "wrong")[0];
  EXPECT_GT(x, outline.x);
  EXPECT_LT(x, outline.x + outline.width);
  EXPECT_GT(y, outline.y + outline.height / 2) << "row 4 of 6 is in the lower half";
  EXPECT_LT(y, outline.y + outline.height);
}

TEST_F(PlacementPicture, without_an_element_the_part_of_the_rank_is_outlined) {
  TensorPlacement placement = sample_placement();
  placement.index.clear();
  draw(placement);
  EXPECT_THAT(hints(0, "wrong"), IsEmpty()) << "the failure is in life 1";
  EXPECT_THAT(hints(1, "wrong"), ElementsAre("rank 1: [0:6, 1:2]"));
  EXPECT_EQ(strokes(1), 0U);
  EXPECT_THAT(captions_[1], HasSubstr("The outline marks what rank 1 holds."));
}

TEST_F(PlacementPicture, boxes_have_the_place_and_the_size_of_their_part) {
  TensorPlacement placement{.key = "w", .shape = {100, 10}, .saved = TensorCut{}};
  placement.saved->boxes = {{.offset = {0, 0}, .extent = {75, 10}, .ranks = {0}},
                            {.offset = {75, 0}, .extent = {25, 5}, .ranks = {1}},
                            {.offset = {75, 5}, .extent = {25, 5}, .ranks = {2}}};
  draw(placement);
  const auto drawn = boxes(0, "part");
  ASSERT_EQ(drawn.size(), 3U);
  EXPECT_NEAR(drawn[0].height, 3 * drawn[1].height, 0.2);
  EXPECT_NEAR(drawn[0].width, drawn[1].width + drawn[2].width, 0.2);
  EXPECT_NEAR(drawn[2].x, drawn[1].x + drawn[1].width, 0.2);
  EXPECT_NEAR(drawn[1].y, drawn[0].y + drawn[0].height, 0.2);
  EXPECT_THAT(captions_[0], HasSubstr("Dimension 0 goes down, dimension 1 to the right."));
}

TEST_F(PlacementPicture, what_no_rank_holds_is_framed_and_said) {
  TensorPlacement placement = sample_placement();
  draw(placement);
  EXPECT_EQ(boxes(0, "frame").size(), 1U);
  EXPECT_THAT(captions_[0], Not(HasSubstr("No rank holds"))) << "the parts cover the tensor";
  EXPECT_THAT(captions_[1], Not(HasSubstr("No rank holds"))) << "a part is left out";
  placement.saved->boxes.pop_back();
  draw(placement);
  EXPECT_THAT(captions_[0], HasSubstr("No rank holds what is empty."));
}

TEST_F(PlacementPicture, no_part_is_too_small_for_its_label) {
  TensorPlacement placement{.key = "w", .shape = {640}, .saved = TensorCut{}};
  for (std::int32_t rank = 0; rank < 64; ++rank) {
    const std::int64_t length = rank == 63 ? 577 : 1;
    placement.saved->boxes.push_back({.offset = {rank}, .extent = {length}, .ranks = {rank}});
  }
  draw(placement);
  EXPECT_EQ(texts(0, "middle").size(), 64U);
  EXPECT_THAT(texts(0, "middle quiet"), IsEmpty()) << "a single dimension goes down";
  for (const auto& box : boxes(0, "part")) EXPECT_GE(box.height, 20);
}

TEST_F(PlacementPicture, three_dimensions_are_flattened_and_said_to_be) {
  TensorPlacement placement{.key = "experts", .shape = {4, 6, 2}, .index = {2, 4, 1}};
  placement.loaded = TensorCut{.life = 1};
  placement.loaded->boxes = {{.offset = {0, 0, 0}, .extent = {2, 6, 2}, .ranks = {0}},
                             {.offset = {2, 0, 0}, .extent = {2, 3, 2}, .ranks = {1}},
                             {.offset = {2, 3, 0}, .extent = {2, 3, 2}, .ranks = {2}}};
  draw(placement);
  EXPECT_THAT(captions_[0], HasSubstr("The dimensions 0 to 1 are flattened and go down"));
  // Rows 0..12 are of rank 0; ranks 1 and 2 take turns, because their rows are cut.
  EXPECT_THAT(texts(0, "end quiet"), ElementsAre("0", "12", "15", "18", "21", "24"));
  EXPECT_EQ(boxes(0, "part").size(), 5U);
  EXPECT_THAT(hints(0, "wrong"), ElementsAre("rank 2: [2:4, 3:6, 0:2]", "rank 2: [2:4, 3:6, 0:2]"));
}

TEST_F(PlacementPicture, a_single_element_and_a_damaged_report_are_drawn_or_left_out) {
  TensorPlacement scalar{.key = "step", .saved = TensorCut{}};
  scalar.saved->boxes = {{.ranks = {0, 1}}};
  draw(scalar);
  EXPECT_THAT(hints(0, "part"), ElementsAre("ranks 0, 1: []"));
  TensorPlacement damaged = sample_placement();
  constexpr std::int64_t kMost = INT64_MAX;
  damaged.saved->boxes = {{.offset = {kMost, 0}, .extent = {1, 1}, .ranks = {0}},
                          {.offset = {0, 0}, .extent = {kMost, kMost}, .ranks = {}},
                          {.offset = {-1, 0}, .extent = {3, 3}, .ranks = {1}},
                          {.offset = {0}, .extent = {3}, .ranks = {1}}};
  damaged.index = {kMost, -kMost};
  draw(damaged);
  ASSERT_EQ(pictures_.size(), 1U) << "no box of the save lies in the tensor";
  EXPECT_EQ(strokes(0), 0U);
  damaged.shape = {kMost, kMost};
  draw(damaged);
  EXPECT_THAT(pictures_, IsEmpty());
  damaged.shape = {0, 4};
  draw(damaged);
  EXPECT_THAT(pictures_, IsEmpty());
  EXPECT_EQ(placement_figures({}), "");
}

TEST_F(PlacementPicture, many_stretches_are_cut_and_the_cut_is_said) {
  TensorPlacement placement{.key = "w", .shape = {1000, 2, 2}, .saved = TensorCut{}};
  placement.saved->boxes = {{.offset = {0, 0, 0}, .extent = {1000, 1, 2}, .ranks = {0}}};
  draw(placement);
  EXPECT_EQ(boxes(0, "part").size(), 512U);
  EXPECT_THAT(captions_[0], HasSubstr("Of each part at most 512 stretches are drawn."));
  EXPECT_THAT(captions_[0], Not(HasSubstr("more part")));
}

}  // namespace
}  // namespace reprise::reports
