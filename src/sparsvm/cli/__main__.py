from sparsvm.cli import main

if __name__ == "__main__":
    main()
