"""Paths of the machine that programs need, and no others: what a workspace may see of its host."""

#: Programs and what belongs to them.
PROGRAMS = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt", "/nix/store")

#: Settings that hold no secret; no resolver is among them, since names are resolved by the proxy.
SETTINGS = tuple(
    f"/etc/{name}"
    for name in (
        *("alternatives", "bash.bashrc", "bash_completion.d", "ca-certificates", "crypto-policies"),
        *("debian_version", "fonts", "gitconfig", "group", "host.conf", "hosts", "inputrc"),
        *("ld.so.cache", "ld.so.conf", "ld.so.conf.d", "localtime", "locale.alias", "magic"),
        *("magic.mime", "mime.types", "nsswitch.conf", "os-release", "passwd", "perl", "pki"),
        *("profile", "profile.d", "protocols", "python3", "python3.11", "python3.12", "services"),
        *("shells", "ssl/certs", "ssl/openssl.cnf", "terminfo", "timezone", "xdg"),
    )
)
#: What a workspace with an open network needs besides.
RESOLVERS = ("/etc/resolv.conf",)

DEVICES = tuple(f"/dev/{name}" for name in ("null", "zero", "full", "random", "urandom", "tty"))

#: Of /proc, where it is the host's: nothing of any process.
KERNEL_FACTS = tuple(
    f"/proc/{name}"
    for name in ("cpuinfo", "filesystems", "loadavg", "meminfo", "stat", "uptime", "version")
)

TEMPORARY = ("/tmp", "/var/tmp")
EMPTY = ("/home", "/root", "/run", "/srv", "/mnt")
