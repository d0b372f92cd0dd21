// Uses every operator that the public headers declare and the library defines.
#include <iostream>
#include <reprise/reprise.hpp>

int main() {
  using namespace reprise;
  std::cout << Value(Dict{{"a", 1}}) << ' ' << Dims{4, 6} << ' ' << Group::world(2) << ' '
            << Mesh({{"dp", 2}}) << ' ' << Code::kUsage << ' ' << DType::kFloat32 << '\n'
            << Finding{} << '\n';
  return Value(1) == Value(1) && Tuple{} == Tuple{} && Set{} == Set{} && Object{} == Object{} ? 0
                                                                                              : 1;
}
