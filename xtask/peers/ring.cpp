// Tokens that go round a ring of actors, in SimGrid: what `cargo xtask peers --lab` compares the
// ring's simulation with. A token is a message; whoever gets one passes it on to its neighbour,
// and every hop takes a millisecond. Prints how many messages there were.
#include <simgrid/s4u.hpp>
#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

namespace sg = simgrid::s4u;

static std::vector<sg::Mailbox*> boxes;
static long hops;
static long hops_left;
static int token;

static void station(int me, bool begins)
{
  sg::Mailbox* mine = boxes[me];
  sg::Mailbox* next = boxes[(me + 1) % boxes.size()];
  if (begins)
    next->put_init(&token, 1)->detach();
  for (;;) {
    mine->get<int>();
    if (--hops_left <= 0) {
      std::cout << "{\"messages\": " << hops << "}" << std::endl;
      std::exit(0);
    }
    next->put_init(&token, 1)->detach();
  }
}

int main(int argc, char** argv)
{
  sg::Engine engine(&argc, argv);
  const int nodes  = std::atoi(argv[1]);
  const int tokens = std::atoi(argv[2]);
  hops = hops_left = std::atol(argv[3]);
  sg::NetZone* zone = sg::create_full_zone("ring");
  std::vector<sg::Host*> hosts;
  for (int i = 0; i < nodes; i++) {
    hosts.push_back(zone->create_host("h" + std::to_string(i), 1e9));
    boxes.push_back(sg::Mailbox::by_name("b" + std::to_string(i)));
  }
  for (int i = 0; i < nodes; i++) {
    auto* link = zone->create_link("l" + std::to_string(i), 1e9)->set_latency(1e-3)->seal();
    zone->add_route(hosts[i]->get_netpoint(), hosts[(i + 1) % nodes]->get_netpoint(), nullptr, nullptr,
                    {sg::LinkInRoute(link)}, false);
  }
  zone->seal();
  for (int i = 0; i < nodes; i++)
    sg::Actor::create("station", hosts[i], station, i, i * tokens / nodes != (i + 1) * tokens / nodes);
  engine.run();
  return 0;
}
