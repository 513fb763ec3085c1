/// The machines of Stricker & Gross: their tables 1 to 4.
#include "longshore/model/throughput.hpp"

namespace longshore {

namespace {

constexpr Index indexed = ReferencePattern::by_index;
using Kind = TransferKind;

}  // namespace

ThroughputTable cray_t3d() {
  return {"Cray T3D",
          {{local_copy(1, 1), 93},
           {local_copy(1, 64), 67.9},
           {local_copy(64, 1), 33.3},
           {local_copy(1, indexed), 38.5},
           {local_copy(indexed, 1), 32.9},
           {load_send(1), 126},
           {load_send(64), 35},
           {load_send(indexed), 32},
           {receive_deposit(1), 142},
           {receive_deposit(64), 52},
           {receive_deposit(indexed), 52},
           {network_data(1), 142},
           {network_data(2), 69},
           {network_data(4), 35},
           {network_address_data(1), 62},
           {network_address_data(2), 38},
           {network_address_data(4), 20}},
          2,
          {{"memory reads", {{Kind::copy}, {Kind::load_send}}, 320}}};
}

ThroughputTable intel_paragon() {
  // What the processor moves crosses the bus twice, what a DMA does once.
  return {
      "Intel Paragon",
      {{local_copy(1, 1), 67.6},
       {local_copy(1, 64), 27.6},
       {local_copy(64, 1), 31.1},
       {local_copy(1, indexed), 35.2},
       {local_copy(indexed, 1), 45.1},
       {load_send(1), 52},
       {fetch_send(1), 160},
       {load_send(64), 42},
       {load_send(indexed), 36},
       {receive_store(1), 82},
       {receive_deposit(1), 160},
       {receive_store(64), 38},
       {receive_store(indexed), 42},
       {network_data(1), 176},
       {network_data(2), 90},
       {network_data(4), 44},
       {network_address_data(1), 88},
       {network_address_data(2), 45},
       {network_address_data(4), 22}},
      2,
      {{"bus",
        {{Kind::copy, 2}, {Kind::load_send, 2}, {Kind::fetch_send}, {Kind::receive_store, 2}, {Kind::receive_deposit}},
        400}}};
}

}  // namespace longshore
