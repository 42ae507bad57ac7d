# Rscript glmnet.R KIND DIR: fits of glmnet to the data that child.py writes into DIR. KIND is "binomial",
# "ungrouped" or "grouped".
suppressMessages({library(glmnet); library(Matrix)})
arg <- commandArgs(TRUE); kind <- arg[1]; here <- function(f) file.path(arg[2], f)
size <- scan(here("size.txt"), quiet = TRUE)
y <- readBin(here("y.bin"), "integer", size[1])
if (file.exists(here("x.bin"))) {
  X <- matrix(readBin(here("x.bin"), "double", size[1] * size[2]), size[1], size[2])
} else {
  entries <- file.info(here("v.bin"))$size / 8
  X <- sparseMatrix(i = readBin(here("i.bin"), "integer", entries), p = readBin(here("p.bin"), "integer", size[2] + 1),
                    x = readBin(here("v.bin"), "double", entries), dims = size, index1 = FALSE)
}
glmnet.control(fdev = 0, devmax = 1)
lines <- file("stdin", "r")
while (length(line <- readLines(lines, 1)) > 0) {
  asked <- as.numeric(strsplit(line, " ")[[1]])
  options <- list(X, if (kind == "binomial") y else factor(y), lambda = asked[1], thresh = asked[2],
                  standardize = FALSE, intercept = FALSE, maxit = 1e6,
                  family = if (kind == "binomial") "binomial" else "multinomial")
  if (kind != "binomial") options$type.multinomial <- kind
  time <- system.time(fit <- do.call(glmnet, options))
  beta <- if (kind == "binomial") list(fit$beta) else fit$beta
  writeBin(unlist(lapply(beta, function(b) as.vector(as.matrix(b)))), here("weights.bin"))
  cat(time[["user.self"]] + time[["sys.self"]], "\n", sep = ""); flush(stdout())
}
