#include "longshore/layouts/layout.hpp"
#include "support/expect_error.hpp"

namespace longshore {
namespace {

using test::expect_error;

TEST(Descriptor, is_a_column_major_block_cyclic_layout) {
  const Descriptor descriptor{1, 0, 100, 80, 16, 8, 1, 0, 70};
  const auto layout = layout_from_descriptor(descriptor, 2, 3);
  EXPECT_EQ(layout, Layout::parse("(CYCLIC(16), CYCLIC(8)) on 2x3, order=F, source=1x0, ld=70", {100, 80}));
  EXPECT_EQ(descriptor_of(layout, 0), descriptor);
  EXPECT_EQ(descriptor_of(layout, 0, 42)[1], 42);
}

TEST(Descriptor, blocks_and_whole_dimensions_have_one_too) {
  const auto layout = Layout::parse("(BLOCK, *) on 4, order=F", {100, 80});
  EXPECT_EQ(descriptor_of(layout, 0), (Descriptor{1, 0, 100, 80, 25, 80, 0, 0, 25}));
  const auto back = layout_from_descriptor(descriptor_of(layout, 0), 4, 1);
  for (const Index i : {0, 24, 25, 99}) EXPECT_EQ(back.owners({i, 79}), layout.owners({i, 79}));
}

TEST(Descriptor, a_rank_without_rows_still_has_a_leading_dimension) {
  const auto layout = Layout::parse("(CYCLIC(64), CYCLIC(64)) on 2x2, order=F", {64, 64});
  EXPECT_EQ(descriptor_of(layout, 3)[8], 1);
}

TEST(Descriptor, names_the_entry_that_is_wrong) {
  const Descriptor good{1, 0, 100, 80, 16, 8, 0, 0, 50};
  struct Case {
    std::size_t entry;
    Index value;
    const char* name;
  };
  for (const auto& [entry, value, name] : std::initializer_list<Case>{{0, 2, "DTYPE_ (entry 1) is 2"},
                                                                      {2, -1, "M_ (entry 3) is -1"},
                                                                      {3, -1, "N_ (entry 4) is -1"},
                                                                      {4, 0, "MB_ (entry 5) is 0"},
                                                                      {5, 0, "NB_ (entry 6) is 0"},
                                                                      {6, 2, "RSRC_ (entry 7) is 2"},
                                                                      {7, -1, "CSRC_ (entry 8) is -1"},
                                                                      {8, 0, "LLD_ (entry 9) is 0"}}) {
    auto bad = good;
    bad[entry] = value;
    expect_error(ErrorKind::layout, {name}, [&] { layout_from_descriptor(bad, 2, 3); });
  }
  expect_error(ErrorKind::layout, {"grid of 0x3"}, [&] { layout_from_descriptor(good, 0, 3); });
}

TEST(Descriptor, refuses_what_it_cannot_say) {
  const auto layout = ErrorKind::layout;
  expect_error(layout, {"3 dimensions"}, [] { descriptor_of(Layout::parse("(*, *, *) on 1, order=F", {2, 2, 2}), 0); });
  expect_error(layout, {"order=F"}, [] { descriptor_of(Layout::parse("(BLOCK, *) on 2", {2, 2}), 0); });
  expect_error(layout, {"replicated"}, [] {
    descriptor_of(Layout::parse("(*, *) on REPLICATED(2), order=F", {2, 2}), 0);
  });
  expect_error(layout, {"dimension 0", "GEN_BLOCK"}, [] {
    descriptor_of(Layout::parse("(GEN_BLOCK(2), *) on 1, order=F", {2, 2}), 0);
  });
  expect_error(layout, {"dimension 1", "inside a block"}, [] {
    descriptor_of(Layout::parse("(*, CYCLIC(2)) on 2, order=F, origin=0x1", {2, 2}), 0);
  });
}

}  // namespace
}  // namespace longshore
