# Rscript glmnet_path.R DIR KIND THRESH: the path of glmnet on the matrix in DIR; KIND is "ungrouped" or
# "grouped" (multinomial), or "binomial", which has no intercept. DIR holds dim.txt ("n d"), y.txt (a label
# a line) and x.bin (doubles by columns), or i.bin, p.bin and v.bin of compressed columns; the lambdas
# are those of alphas.bin or, without it, 100 down to a hundredth of the first. Writes lambda.bin, a0.bin
# (lambda by lambda) and beta.bin (class, then lambda, then feature), and prints processor seconds and the
# number of lambdas. Long paths print the percentage computed as they go.
suppressMessages({library(glmnet); library(Matrix)})
arg <- commandArgs(TRUE); here <- function(f) file.path(arg[1], f)
size <- scan(here("dim.txt"), quiet = TRUE)
if (file.exists(here("x.bin"))) {
  X <- matrix(readBin(here("x.bin"), "double", size[1] * size[2]), size[1], size[2])
} else {
  entries <- file.info(here("v.bin"))$size / 8
  X <- sparseMatrix(i = readBin(here("i.bin"), "integer", entries), p = readBin(here("p.bin"), "integer", size[2] + 1),
                    x = readBin(here("v.bin"), "double", entries), dims = size, index1 = FALSE)
}
y <- factor(scan(here("y.txt"), what = "", sep = "\n", quiet = TRUE))
glmnet.control(fdev = 0, devmax = 1)
options <- list(x = X, y = y, standardize = FALSE, nlambda = 100, lambda.min.ratio = 0.01,
                thresh = as.numeric(arg[3]), trace.it = prod(size, nlevels(y)) > 1e7)
options <- c(options, if (arg[2] == "binomial") list(family = "binomial", intercept = FALSE) else
                                                list(family = "multinomial", type.multinomial = arg[2]))
if (file.exists(here("alphas.bin"))) options$lambda <- readBin(here("alphas.bin"), "double", 1e6)
time <- system.time(fit <- do.call(glmnet, options))
cat(time[["user.self"]] + time[["sys.self"]], length(fit$lambda), "\n")
writeBin(fit$lambda, here("lambda.bin")); writeBin(as.vector(fit$a0), here("a0.bin"))
out <- file(here("beta.bin"), "wb")
for (b in if (is.list(fit$beta)) fit$beta else list(fit$beta)) writeBin(as.vector(as.matrix(b)), out)
close(out)
