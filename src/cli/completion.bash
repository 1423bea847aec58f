# bash completion of dtrain
_dtrain() {
    local commands='@COMMANDS@'
    local table='@TABLE@
'
    local line=${COMP_LINE:0:COMP_POINT} command=train item known word
    word=${line##*[[:space:]]}
    for item in ${line#* }; do
        [[ " $commands " == *" $item "* ]] && command=$item && break
    done
    known=$(sed -n "s/^$command://p" <<<"$table")
    [[ $COMP_CWORD -eq 1 || $command == help ]] && known+=" $commands --help --version"
    [[ $command == options || $command == help ]] && known+=" $(grep -o '[a-z]*[.][a-z_0-9]*=' <<<"$table" | tr -d = | sort -u)"
    COMPREPLY=()
    for item in $known --log=error --log=warn --log=info --log=debug; do
        [[ $item == "$word"?* ]] || continue
        [[ $word == *=* ]] && item=${item#*=}
        COMPREPLY+=("$item")
    done
    [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *= ]] && compopt -o nospace 2>/dev/null
    return 0
}
complete -o default -o bashdefault -F _dtrain dtrain ./dtrain
