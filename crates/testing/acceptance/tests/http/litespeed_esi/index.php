<?php

/**
 * Writes what LiteSpeed's plugin for WordPress 7.9 writes with ESI on: pages, their fragments, purges.
 *
 * Header fields, elements and addresses are those of a recording. A session is valid if it is in
 * USERS. The data are files, which a POST changes. Each render has a number, so that a test sees
 * which pages are shared.
 */

const USERS = [
    'erin|1795380427|5SzN0P9avFMfUS5a6EjgFAAluv45Zuan' => ['Erin', 'ad938ac476e72ab7c18151eed80d9933'],
    'carl|1795380427|Qk2N0P9avFMfUS5a6EjgFAAluv45Zuan' => ['Carl', 'ad938ac476e72ab7c18151eed80d9933'],
    'admin|1795380428|wXdj8DObA4zhEHI8YhBHX3dNiub0KDYz' => ['Admin', '3cf01c1ed2ab284176b9ac7b8f6134f5'],
];

$file = fn (string $name): string => getenv('NOTES') . "/data-$name";
$data = fn (string $name): string => (string) @file_get_contents($file($name));
[$user, $role] = USERS[$_COOKIE['wordpress_logged_in_fe788ec8'] ?? ''] ?? [null, null];
$path = strtok($_SERVER['REQUEST_URI'], '?');
$render = bin2hex(random_bytes(6));

if ($_SERVER['REQUEST_METHOD'] === 'POST' && $path !== '/') {
    [, $name, $value] = explode('/', $path);
    $is_written = file_put_contents("{$file($name)}.new", $value) !== false && rename("{$file($name)}.new", $file($name));
    header('X-LiteSpeed-Cache-Control: no-cache');
    header('X-LiteSpeed-Purge: public,' . ['title' => 'a7f_Po.301', 'recent' => 'a7f_W.recent-posts-2', 'tick' => 'a7f_ESI.nonce'][$name]);
    exit($is_written ? 'done' : 'not written');
}
if (!str_contains($_SERVER['X-LSCACHE'] ?? '', 'esi')) {
    header('X-LiteSpeed-Cache-Control: no-cache');
    exit('no ESI');
}

/** The element for a fragment, as the plugin writes it. */
function element(string $block, array $params, string $control, string $more = ''): string
{
    $url = "/?lsesi=$block" . ($control === '' ? '' : '&_control=' . urlencode($control));
    $url .= '&esi=' . urlencode(base64_encode(json_encode($params))) . '&_hash=' . md5($block . $control);
    return "<esi:include src='$url'" . ($control === '' ? '' : " cache-control='$control'") . "$more />";
}

if (isset($_GET['lsesi'])) {
    $block = $_GET['lsesi'];
    $private = str_starts_with($_GET['_control'] ?? '', 'private') || ($block === 'nonce' && $user !== null);
    $scope = $private ? 'private,no-vary,max-age=1800' : 'public,no-vary,max-age=43200';
    $public = $private ? 'public:' : '';
    $tags = ($private ? 'a7f_tag_priv,' : '') . "{$public}a7f_ESI,{$public}a7f_ESI.$block,{$public}a7f_";
    header('Expires: Wed, 11 Jan 1984 05:00:00 GMT');
    header('Cache-Control: no-cache, must-revalidate, max-age=0');
    header("X-LiteSpeed-Cache-Control: $scope");
    header("X-LiteSpeed-Tag: $tags" . ($block === 'widget' ? ',a7f_W.recent-posts-2' : ''));
    echo match ($block) {
        'admin-bar' => "<div id=\"wpadminbar\">Howdy, $user on {$_SERVER['ESI_REFERER']}</div>",
        'comment-form' => "<form>Logged in as $user</form>",
        'nonce' => substr(md5("{$data('tick')} $user"), 0, 10),
        'widget' => "<ul>{$data('recent')} $render" . ($_COOKIE['theme'] ?? '') . '</ul>',
        'inline' => "mine is $user",
    };
    exit;
}

if ($user === null && isset($_COOKIE['_lscache_vary']) || $user !== null && ($_COOKIE['_lscache_vary'] ?? '') !== $role) {
    header("Set-Cookie: _lscache_vary=$role; path=/; HttpOnly");
    header('X-LiteSpeed-Cache-Control: no-cache,esi=on');
} else {
    $esi = $path === '/comment-only' ? '' : ',esi=on';
    header("X-LiteSpeed-Cache-Control: public,max-age=604800$esi");
}
header('X-LiteSpeed-Tag: a7f_PGSRP,a7f_post,a7f_URL.bdcc6d723a68964e2e54a516db0865a8,a7f_Po.301,a7f_');
if ($path === '/comment-only') {
    exit("A comment: " . element('admin-bar', ['ref' => '/'], 'private,no-vary'));
}
$nonce = element('nonce', ['action' => 'wp_rest', '_ls_silence' => true], '', " as-var='1'");
$inline = preg_replace('/^<esi:include src=(.*) cache-control.*/', "<esi:inline name=$1 cache-control='private,max-age=1800,no-vary' cache-tag='a7f_I'>", element('inline', ['id' => 1], 'private'));
?>
<body class="<?= htmlspecialchars($_COOKIE['theme'] ?? $_COOKIE['cmplz_theme'] ?? 'plain') ?>">
<h1><?= $data('title') ?></h1><i><?= $render ?></i>
<script>/* <![CDATA[ */ var api = {"nonce":"<?= $nonce ?>"}; /* ]]> */</script>
<?= element('widget', ['id' => 'recent-posts-2'], 'no-vary') ?>
<?php if ($user !== null) : ?>
<?= "{$inline}mine is $user</esi:inline>", element('inline', ['id' => 1], 'private') ?>
<!-- lscwp comment form --><?= element('comment-form', ['id' => 301], 'private,no-vary') ?><!-- lscwp comment form esi end -->
<!-- lscwp adminbar --><?= element('admin-bar', ['ref' => $path], 'private,no-vary') ?><!-- lscwp adminbar esi end -->
<?php endif ?>
