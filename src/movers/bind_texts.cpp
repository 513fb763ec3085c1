#include "movers/bind_texts.hpp"

#include <charconv>
#include <complex>

#include "relations/element_types.hpp"

namespace longshore {

namespace {

std::string element_of(Index bytes, const std::string& name) {
  return std::to_string(bytes) + (bytes == 1 ? " byte" : " bytes") + (name.empty() ? "" : " (" + name + ")");
}

std::string type_of(const Reduction& reduction) {
  return reduction.op() == ReduceOp::user ? "elements of " + std::to_string(reduction.element_bytes()) + " bytes"
                                          : std::string(element_name(reduction.type()));
}

/// All of its digits: numbers that differ have texts that differ.
template <class T>
std::string text_of(const T& number) {
  char text[64];
  return {text, std::to_chars(text, text + sizeof text, number).ptr};
}
template <class T>
std::string text_of(const std::complex<T>& number) {
  return text_of(number.real()) + " + " + text_of(number.imag()) + "i";
}

/// A scalar with its type, but for the one that a plain copy has, which is the same in every type.
std::string scalar_of(ElementType type, const ScalarBytes& bytes, int of_copies) {
  return with_type(type, [&](auto zero) {
    const auto number = load_element<decltype(zero)>(bytes.data());
    if (number == decltype(zero)(of_copies)) return std::to_string(of_copies);
    return text_of(number) + " (" + std::string(element_name(type)) + ")";
  });
}

void add_update(Facts& facts, const Update& update) {
  const Combine& combine = update.combine();
  const Reduction& reduction = update.reduction();
  const bool copies = combine.is_copy();
  facts.push_back({"alpha", copies ? "1" : scalar_of(combine.type(), combine.alpha(), 1)});
  facts.push_back({"beta", copies ? "0" : scalar_of(combine.type(), combine.beta(), 0)});
  facts.push_back({"conjugate", combine.conjugate() ? "true" : "false"});
  facts.push_back({"reduce", reduction.is_replace()
                                 ? "none"
                                 : std::string(reduce_name(reduction.op())) + " of " + type_of(reduction)});
}

}  // namespace

Facts block_facts(const BlockPlan& plan, const XArray& source, const XArray& destination, const Update& update,
                  Order visit, const std::string& element) {
  Facts facts = plan.facts(true);
  const bool same = source.same_storage(destination);
  facts.push_back({"arrays", same ? "one, moved within itself" : "a source and a destination"});
  auto array = [&](const XArray& of, const FloorPlan& blocks, const char* side) {
    facts.push_back({std::string(side) + " array", "elements of " + element_of(of.element_bytes(), element)});
    facts.push_back({std::string(side) + " array", "ghost cells " + of.format().ghost.to_string()});
    facts.push_back({std::string(side) + " array", std::string("order ") + char(of.format().order)});
    if (!(of.blocks() == blocks))
      facts.push_back({std::string(side) + " array", "blocks of digest " + std::to_string(of.blocks().digest())});
  };
  array(source, plan.source(), "source");
  if (!same) array(destination, plan.destination(), "destination");
  add_update(facts, update);
  facts.push_back({"visit", std::string(1, char(visit))});
  return facts;
}

Facts layout_facts(const MotionPlan& plan, const Update& update, const std::string& element) {
  Facts facts;
  std::string shape, axes;
  for (const Index n : plan.source().shape()) shape += (shape.empty() ? "" : "x") + std::to_string(n);
  for (const std::size_t axis : plan.axes()) axes += (axes.empty() ? "" : ", ") + std::to_string(axis);
  facts.push_back({"plan", "a redistribution"});
  facts.push_back({"shape", shape});
  facts.push_back({"elements", element_of(plan.element_bytes(), element)});
  facts.push_back({"source layout", plan.source().to_string()});
  facts.push_back({"destination layout", plan.destination().to_string()});
  facts.push_back({"axes", axes});
  add_update(facts, update);
  return facts;
}

}  // namespace longshore
