// Points of the cone blocks: where they enter, how far they may go, what they are worth.
#include "penalty/cone_blocks.hpp"

namespace sparsvm {

namespace {

// use(the cones of the block's norm).
template <typename Use>
decltype(auto) with_cone(const ConeBlock& b, Use use) {
  return with_norm(b.shape.norm, [&](auto norm) {
    using Norm = decltype(norm);
    if constexpr (requires { typename Norm::MixedCone; })
      if (b.shape.absolute > 0.0) return use(typename Norm::MixedCone());
    return use(typename Norm::Cone());
  });
}

}  // namespace

void ConeBlocks::add(const BlockShape& general, int64_t count, const int32_t* cols,
                     const int32_t* classes, const double* g, const double* shifts, double mu,
                     const double* weights, bool known) {
  ConeBlock blk;
  blk.shape = general.for_size(count);
  blk.begin = n_coordinates();
  blk.end = blk.begin + count;
  for (int64_t c = 0; c < count; ++c) {
    col.push_back(cols[c]);
    cls.push_back(classes[c]);
  }
  if (static_cast<int64_t>(w.size()) < blk.end) grow(blk.end);
  std::copy(shifts, shifts + count, shift.begin() + blk.begin);
  std::vector<double> inside(count);
  for (int64_t c = 0; c < count; ++c) inside[c] = g[c] + shifts[c];
  with_cone(blk, [&](auto cone) {
    blk.pairs = cone.kPairs;
    blk.cone = cone.kCone;
    cone.enter(*this, blk, inside.data(), mu);
    if (!weights) return;
    // The primal part is replaced by the weights, with the slacks that belong to them on the central path.
    std::copy_n(weights, count, w.begin() + blk.begin);
    cone.move_to(*this, blk, mu, known);
    // The slacks of a curved block stand for G + quad*W; they were set for W = 0.
    for (int64_t c = blk.begin; c < blk.end; ++c) shift[c] -= blk.shape.quad * w[c];
  });
  blocks_.push_back(blk);
}

void ConeBlocks::remove(const std::vector<char>& marked) {
  struct Move {
    int64_t from, to, size;
  };
  std::vector<Move> moves;  // of neighbours together
  int64_t total = 0;
  std::size_t kept = 0;
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    if (marked[i]) continue;
    ConeBlock b = blocks_[i];
    const int64_t size = b.end - b.begin;
    if (!moves.empty() && moves.back().from + moves.back().size == b.begin)
      moves.back().size += size;
    else
      moves.push_back({b.begin, total, size});
    b.begin = total;
    b.end = total += size;
    blocks_[kept++] = b;
  }
  blocks_.resize(kept);
  const auto close = [&](auto& a) {
    for (const Move& m : moves) std::copy_n(a.begin() + m.from, m.size, a.begin() + m.to);
    a.resize(static_cast<std::size_t>(total));
  };
  for (auto* a : arrays()) close(*a);
  close(col);
  close(cls);
}

double ConeBlocks::complementarity(double ap, double ad) const {
  double sum = 0.0;
  for (const ConeBlock& b : blocks_) {
    for (int64_t c = b.begin; c < b.end; ++c) {
      if (b.pairs)
        sum += (x1[c] + ap * dx1[c]) * (z1[c] + ad * dz1[c]) +
               (x2[c] + ap * dx2[c]) * (z2[c] + ad * dz2[c]);
      if (b.cone) sum += (w[c] + ap * dw[c]) * (v[c] + ad * dv[c]);
    }
    if (b.cone) sum += (b.t + ap * b.dt) * b.shape.radius;
  }
  return sum;
}

double ConeBlocks::degree() const {
  double deg = 0.0;
  for (const ConeBlock& b : blocks_)
    deg += (b.pairs ? 2.0 * static_cast<double>(b.end - b.begin) : 0.0) + (b.cone ? 1.0 : 0.0);
  return deg;
}

double ConeBlocks::max_primal_step() const {
  double a = kUnbounded;
  for (const ConeBlock& b : blocks_) {
    if (b.pairs)
      for (int64_t c = b.begin; c < b.end; ++c) {
        if (dx1[c] < 0.0) a = std::min(a, -x1[c] / dx1[c]);
        if (dx2[c] < 0.0) a = std::min(a, -x2[c] / dx2[c]);
      }
    if (b.cone)
      a = std::min(a,
                   cone_step(b.t, b.dt, w.data() + b.begin, dw.data() + b.begin, b.end - b.begin));
  }
  return a;
}

double ConeBlocks::max_dual_step() const {
  double a = kUnbounded;
  for (const ConeBlock& b : blocks_) {
    if (b.pairs)
      for (int64_t c = b.begin; c < b.end; ++c) {
        if (dz1[c] < 0.0) a = std::min(a, -z1[c] / dz1[c]);
        if (dz2[c] < 0.0) a = std::min(a, -z2[c] / dz2[c]);
      }
    if (b.cone)
      a = std::min(a, cone_step(b.shape.radius, 0.0, v.data() + b.begin, dv.data() + b.begin,
                                b.end - b.begin));
  }
  return a;
}

void ConeBlocks::step(double ap, double ad) {
  for (ConeBlock& b : blocks_) {
    with_cone(b, [&](auto cone) {
      for (int64_t c = b.begin; c < b.end; ++c) {
        if (cone.kPairs) {
          x1[c] += ap * dx1[c];
          x2[c] += ap * dx2[c];
          z1[c] += ad * dz1[c];
          z2[c] += ad * dz2[c];
        }
        if (cone.kCone) v[c] += ad * dv[c];
        w[c] = cone.weight(*this, c, ap);
        shift[c] = (1.0 - ad) * shift[c] + (ad - ap) * b.shape.quad * dw[c];
        if (std::abs(shift[c]) < kNoShift) shift[c] = 0.0;
      }
    });
    b.t += ap * b.dt;
  }
}

double ConeBlocks::value(const std::vector<double>& values) const {
  double total = 0.0;
  for (const ConeBlock& b : blocks_) {
    double sum = 0.0, squares = 0.0;
    for (int64_t c = b.begin; c < b.end; ++c) {
      sum += std::abs(values[c]);
      squares += values[c] * values[c];
    }
    const double norm = with_norm(b.shape.norm, [&](auto kind) {
      return norm_of<decltype(kind)>([&](auto visit) {
        for (int64_t c = b.begin; c < b.end; ++c) visit(std::abs(values[c]));
      });
    });
    total += b.shape.absolute * sum + b.shape.radius * norm + 0.5 * b.shape.quad * squares;
  }
  return total;
}

double ConeBlocks::conjugate(const double* g) const {
  double total = 0.0;
  for (const ConeBlock& b : blocks_) {
    if (b.shape.quad <= 0.0) continue;
    const double over = std::max(std::abs(g[b.begin]) - b.shape.radius, 0.0);
    total += over * over / (2.0 * b.shape.quad);
  }
  return total;
}

double ConeBlocks::shift_value(double limit) const {
  double total = 0.0;
  for (const ConeBlock& b : blocks_) {
    if (b.shape.quad > 0.0) continue;
    for (int64_t c = b.begin; c < b.end; ++c) {
      if (std::abs(shift[c]) > limit) return kUnbounded;
      total += std::abs(shift[c] * w[c]);
    }
  }
  return total;
}

void ConeBlocks::sparse_weights(const double* column_scale, double threshold,
                                std::vector<double>& out) const {
  out.assign(w.begin(), w.end());
  for (const ConeBlock& b : blocks_) {
    double scale = 0.0;
    for (int64_t c = b.begin; c < b.end; ++c) scale = std::max(scale, column_scale[col[c]]);
    with_cone(b, [&](auto cone) { cone.set_zeros(*this, b, scale, threshold, out.data()); });
  }
}

void ConeBlocks::subtract_held(double* dg) const {
  for (const ConeBlock& b : blocks_)
    with_cone(b, [&](auto cone) {
      for (int64_t c = b.begin; c < b.end; ++c)
        dg[c] = cone.without_dual(*this, b, c, dg[c] + shift[c]);
    });
}

void ConeBlocks::compute_scaling() {
  for (ConeBlock& b : blocks_) {
    b.kappa = 0.0;
    with_cone(b, [&](auto cone) { cone.scale(*this, b); });
  }
}

void ConeBlocks::compute_rhs(double tau) {
  for (ConeBlock& b : blocks_) {
    if (b.pairs)
      for (int64_t c = b.begin; c < b.end; ++c) {
        c1[c] = tau - x1[c] * z1[c] + term1[c];
        c2[c] = tau - x2[c] * z2[c] + term2[c];
      }
    with_cone(b, [&](auto cone) { cone.rhs(*this, b, tau); });
  }
}

void ConeBlocks::recover(const double* dg) {
  for (ConeBlock& b : blocks_) {
    double along = 0.0;  // vec . dG
    for (int64_t c = b.begin; c < b.end; ++c) along += vec[c] * (dg[c] - shift[c]);
    for (int64_t c = b.begin; c < b.end; ++c)
      dw[c] = h[c] - delta[c] * (dg[c] - shift[c]) - b.kappa * along * vec[c];
    with_cone(b, [&](auto cone) { cone.recover(*this, b, dg, along); });
  }
}

}  // namespace sparsvm
