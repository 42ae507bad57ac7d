// The end of the interior point: polishing on the active set, exact equalities, the user's
// coordinates. Member functions of InteriorPoint, declared in interior_point.hpp.
#pragma once

#include "solvers/interior_point/interior_point.hpp"
#include "solvers/interior_point/interior_point_face.hpp"

namespace sparsvm {

// Tries to finish from here by Newton steps on the face that complementarity points to. Left to the
// interior point are groups of all classes, tilts, unpenalised features, systems of few features, whose
// own steps cost as little, and the other norms: they have corners instead of curvature, and on these
// the guess of the face did not settle (raw images with l1 took half as long again).
inline bool InteriorPoint::on_face(double tol) {
  if (quadratic_ || layout_.joint || layout_.shape.kind != BlockKind::euclidean || t_.tilt ||
      !free_features_.empty() || system_.by_features() || empty_class_ || keep_pair_.empty())
    return false;
  const double gap = (best().primal - best_dual_) / magnitude(best().primal);
  const double early = n_ < kManySamples ? kFaceGap : kEarlyFaceGap;
  if (!(gap <= early && gap <= next_face_gap_)) return false;
  next_face_gap_ = 0.5 * gap;
  return Face(*this, gap).find(tol);
}

// Identifies the active coordinates and solves for these alone, from here: all others are exactly
// zero, and the dual value stays the one of the whole problem. Lower thresholds keep more
// coordinates, for degenerate problems in which complementarity does not tell the zeros.
// Exports the polished point if it meets the tolerance or is better than any before.
inline int InteriorPoint::polish(int it, const InteriorPointOptions& options,
                                 InteriorPointResult& result) {
  const ConeBlocks blocks = blocks_;
  const std::vector<double> b = b_;
  double best_primal = best().primal;
  export_point(best(), result);
  polishing_ = true;
  for (double threshold = 1.0; threshold > 1e-7; threshold *= 1e-2) {
    blocks_ = blocks;
    b_ = b;
    restart_on_active(threshold);
    for (int step = 0; step < kPolishSteps && it < options.max_iter; ++step) {
      monitor_.poll();
      evaluate();
      record(it);
      if (converged(options.tol) || !iterate(it)) break;
      ++it;
    }
    if (sparse_.primal < best_primal || converged(options.tol)) {
      best_primal = sparse_.primal;
      export_point(sparse_, result);
    }
    if (converged(options.tol) || it >= options.max_iter) break;
  }
  return it;
}

// Rebuilds the blocks from the coordinates that are active at the threshold, a little inside.
inline void InteriorPoint::restart_on_active(double threshold) {
  blocks_.sparse_weights(column_scale_.data(), threshold, trial_);
  for (std::size_t a = 0; a < Y_.size(); ++a)
    Y_[a] = (1.0 - kPolishMix) * best_Y_[a] + kPolishMix * first_Y_[a];
  mu_ = kPolishMix * margin_unit_ * total_lambda_ / static_cast<double>(Y_.size());
  signed_coordinates();
  ConeBlocks active;
  std::vector<std::int32_t> cols, classes;
  std::vector<double> g, weights, shift;
  for (std::int64_t b = 0; b < blocks_.size(); ++b) {
    cols.clear(), classes.clear(), g.clear(), weights.clear();
    bool any = false;
    for (std::int64_t c = blocks_.begin(b); c < blocks_.end(b); ++c) {
      any = any || trial_[c] != 0.0;
      if (trial_[c] == 0.0 && blocks_.separable(b)) continue;
      cols.push_back(blocks_.col[c]);
      classes.push_back(blocks_.cls[c]);
      g.push_back(dg_[c]);
      weights.push_back(trial_[c]);
    }
    if (!any) continue;
    const auto size = static_cast<std::int64_t>(cols.size());
    shift.assign(cols.size(), 0.0);
    if (blocks_.shape(b).exceeds(g.data(), size, 1.0 - 1e-9)) {
      const double pull = 0.9 / blocks_.shape(b).dual_norm(g.data(), size) - 1.0;
      for (std::int64_t c = 0; c < size; ++c) shift[c] = pull * g[c];
    }
    active.add(blocks_.shape(b), size, cols.data(), classes.data(), g.data(), shift.data(), mu_,
               weights.data());
  }
  blocks_ = std::move(active);
  system_.close_coordinates();
  dense_ = sparse_ = Candidate();
  start_slacks(kPolishMix);
}

// Removes what rounding left of F'Y~: unpenalised features demand it exactly, and no scaling of the
// certificate could repair it.
inline void InteriorPoint::project_dual() {
  const std::size_t size = static_cast<std::size_t>(n_) * system_.q();
  Equalities equalities(*this,
                        std::vector<double>(system_.free_columns(), system_.free_columns() + size));
  for (int round = 0; round < 5; ++round)
    if (equalities.approach(best_Y_) == 0.0) return;
}

inline void InteriorPoint::export_dual(InteriorPointResult& out) const {
  out.dual.resize(best_Y_.size());
  for (int i = 0; i < n_; ++i)
    for (int k = 0; k < K_; ++k)
      out.dual[static_cast<std::size_t>(i) * K_ + k] = best_Y_[ck(k) + i];
}

inline void InteriorPoint::export_point(const Candidate& point, InteriorPointResult& out) {
  out.intercept.assign(outputs_, 0.0);
  list_used(point, out.used);
  out.weights.assign(out.used.size() * outputs_, 0.0);
  const auto row = [&](std::int32_t j) {
    return out.weights.data() +
           (std::lower_bound(out.used.begin(), out.used.end(), j) - out.used.begin()) * outputs_;
  };
  if (quadratic_) {
    if (point.scale != 0.0) quadratic_weights(point.Y, out.weights);
  } else {
    for (std::size_t c = 0; c < point.values.size(); ++c) {
      if (point.values[c] == 0.0) continue;
      const auto j = static_cast<std::int32_t>(point.at[c] / outputs_);
      row(j)[point.at[c] % outputs_] = point.values[c] * layout_.inv_omega[j];
    }
  }
  for (int k = shift_class_; k < K_; ++k) {
    if (!system_.has_free(k)) continue;
    const double* b = point.b.data() + system_.free_offset(k);
    const int first = t_.intercept ? 1 : 0;
    if (t_.intercept) out.intercept[k - shift_class_] = b[0];
    for (std::size_t f = 0; f < free_features_.size(); ++f)
      row(free_features_[f])[k - shift_class_] = b[first + f] / free_scale_[f];
  }
  for (double& w : out.weights) w *= point.scale;
  for (double& b : out.intercept) b *= point.scale;
  if (t_.intercept)
    for (std::size_t c = 0; c < out.used.size(); ++c)
      for (int o = 0; o < outputs_; ++o)
        out.intercept[o] -= mean_[out.used[c]] * out.weights[c * outputs_ + o];
}

// The features that may have weights, increasing: all of a quadratic penalty.
inline void InteriorPoint::list_used(const Candidate& point,
                                     std::vector<std::int32_t>& used) const {
  if (quadratic_) {
    used.resize(static_cast<std::size_t>(d_));
    std::iota(used.begin(), used.end(), 0);
    return;
  }
  used = free_features_;
  for (std::size_t c = 0; c < point.values.size(); ++c)
    if (point.values[c] != 0.0) used.push_back(static_cast<std::int32_t>(point.at[c] / outputs_));
  std::sort(used.begin(), used.end());
  used.erase(std::unique(used.begin(), used.end()), used.end());
}

// W = (V - X'Y~) / omega^2, the weights that a dual point stands for under a quadratic penalty.
inline void InteriorPoint::quadratic_weights(const std::vector<double>& Y, std::vector<double>& W) {
  std::vector<double> yt(Y.size());
  for (int k = 0; k < K_; ++k) {
    signed_column(Y, k, signed_);
    for (int i = 0; i < n_; ++i) yt[static_cast<std::size_t>(i) * K_ + k] = signed_[i];
  }
  price(yt.data());
  W.resize(dG_.size());
  for (std::int64_t j = 0; j < d_; ++j)
    for (int o = 0; o < outputs_; ++o) {
      const std::size_t a = static_cast<std::size_t>(j) * outputs_ + o;
      const double g = dG_[a] - (t_.tilt ? t_.tilt[a] : 0.0);
      W[a] = -g * layout_.inv_omega[j] * layout_.inv_omega[j];
    }
}

}  // namespace sparsvm
