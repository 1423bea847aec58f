#compdef dtrain
# zsh completion of dtrain
_dtrain() {
    local commands='@COMMANDS@'
    local table='@TABLE@
'
    local command=train item
    for item in ${words[2,CURRENT-1]}; do
        [[ " $commands " == *" $item "* ]] && command=$item && break
    done
    local -a known
    known=(${=${(M)${(f)table}:#$command:*}#*:} --log=error --log=warn --log=info --log=debug)
    if [[ $PREFIX == *=* ]]; then
        known=(${${(M)known:#${PREFIX%%=*}=?*}#*=})
        compset -P '*='
        (( $#known )) && compadd -a known || _files
        return
    fi
    (( CURRENT == 2 )) || [[ $command == help ]] && compadd -- ${=commands} --help --version
    [[ $command == (options|help) ]] && compadd -- ${(u)${(M)${=table}:#*.*=*}%%=*}
    local -aU keys
    keys=(${${(M)known:#*=*}%%=*})
    compadd -S = -a keys
    compadd -- ${known:#*=*}
    _files
}
if [[ $funcstack[1] == _dtrain ]]; then _dtrain "$@"; else compdef _dtrain dtrain; fi
